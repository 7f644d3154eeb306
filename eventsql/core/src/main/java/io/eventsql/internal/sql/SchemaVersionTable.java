package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Set;

/** {@code schema_version}: the library's SQL files that were applied to a database. */
public final class SchemaVersionTable {
    private static final int LOCK_CLASS = 0x45534D47; // "ESMG": one process migrates, the others wait

    // Reads the catalog: pg_class by its name. Takes no row lock.
    private static final String FIND_OTHER_SCHEMAS = """
            SELECT n.nspname
            FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relname = 'outbox_relay' AND c.relkind = 'r' AND n.nspname <> ?
            ORDER BY n.nspname""";

    // Of a transaction that applies files: publishers queue behind a lock that it waits for.
    private static final String LIMIT_WAITS =
            "SELECT set_config('lock_timeout', '45s', true), " + Database.NO_TRANSACTION_TIMEOUT;

    // Reads the catalog: pg_proc by its schema. Not the functions of single streams, which no file changes by their
    // text.
    private static final String FIND_UNQUOTED = """
            SELECT pg_get_functiondef(p.oid)
            FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE n.nspname = ? AND p.prokind = 'f' AND p.prosrc ~ ('\\m' || ? || '\\.')
              AND (p.proname ~ '_v[0-9]+$' OR p.proname IN ('declare_restored', 'json_or_null', 'retry_refused_events'))""";

    // Reads the catalog: what functions name, other than the tables and functions of single streams.
    private static final String FIND_NAMES = """
            SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE n.nspname = ? AND p.proname ~ '^[a-z0-9_]+$'
            UNION
            SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = ? AND c.relname ~ '^[a-z0-9_]+$' AND c.relname !~ '^events_'""";

    private final SqlSchema schema;

    public SchemaVersionTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Returns the schema that the statements are written for. */
    public SqlSchema schema() {
        return schema;
    }

    /** Takes the advisory lock that a migration needs, and holds it until the transaction ends. */
    public void lock(Connection connection) {
        Jooq.using(connection).fetch("SELECT pg_advisory_xact_lock(?, hashtext(?))", LOCK_CLASS, schema.name());
    }

    /** Limits how long the files that follow in this transaction wait for a lock, and not how long all of them take. */
    public void limitWaits(Connection connection) {
        Jooq.using(connection).fetch(LIMIT_WAITS);
    }

    /**
     * Writes the schema's name with quotes in functions that another tool has created without: files that change a function
     * look for its text as this class writes it.
     */
    public void quoteSchemaName(Connection connection) throws SQLException {
        if (schema.isWritten()) {
            return;
        }
        var dsl = Jooq.using(connection);
        List<String> definitions =
                dsl.fetch(FIND_UNQUOTED, schema.name(), schema.name()).getValues(0, String.class);
        if (definitions.isEmpty()) {
            return;
        }
        List<String> names = dsl.fetch(FIND_NAMES, schema.name(), schema.name()).getValues(0, String.class);
        try (Statement statement = connection.createStatement()) {
            for (String definition : definitions) {
                String quoted = schema.quoted(definition, names);
                if (!quoted.equals(definition)) {
                    statement.execute(quoted);
                }
            }
        }
    }

    /** Returns the versions applied; none if there is no table or no schema yet. */
    public Set<Integer> findVersions(Connection connection) {
        var dsl = Jooq.using(connection);
        boolean exists = Boolean.TRUE.equals(
                dsl.fetchValue("SELECT to_regclass(?) IS NOT NULL", schema.sql("eventsql.schema_version")));
        return exists
                ? Set.copyOf(dsl.fetch(schema.sql("SELECT version FROM eventsql.schema_version"))
                        .map(r -> r.get(0, Integer.class)))
                : Set.of();
    }

    /** Returns the other schemas of this database that have tables of the library. */
    public List<String> findOtherSchemas(Connection connection) {
        return Jooq.using(connection).fetch(FIND_OTHER_SCHEMAS, schema.name()).getValues(0, String.class);
    }

    /**
     * Creates the schema unless it exists. IF NOT EXISTS would not do: it fails if the role lacks the right to create.
     */
    public void createSchemaIfMissing(Connection connection) {
        var dsl = Jooq.using(connection);
        boolean exists = Boolean.TRUE.equals(
                dsl.fetchValue("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = ?)", schema.name()));
        if (!exists) {
            dsl.execute("CREATE SCHEMA " + schema.quotedName());
        }
    }

    /** Runs one SQL file, which records itself, in the caller's transaction. */
    public void apply(Connection connection, String file) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(schema.sql(file));
        }
    }
}
