package io.eventsql.internal.schema;

import io.eventsql.EventSqlException;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.MigrationTable;
import io.eventsql.internal.sql.SqlSchema;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings a database's schema to the version this library needs, from the numbered SQL files, in one transaction under a
 * transaction-scoped advisory lock. Thread-safe.
 */
public final class Migrator {
    private static final Logger LOG = LoggerFactory.getLogger(Migrator.class);

    /** Numbered from 1 without gaps; a file that was released is never changed. */
    private static final List<String> FILES = List.of("V1__event_log", "V2__consumers", "V3__outbox");
    /** The numbers of the files that a shard needs, and those that a database needs which has only an outbox. */
    private static final List<Integer> OF_SHARD = List.of(1, 2, 3);

    private static final List<Integer> OF_OUTBOX = List.of(3);

    private final MigrationTable versions;
    private final boolean mayMigrate;

    /**
     * A migrator for databases with this schema.
     *
     * @param mayMigrate {@code false}: only check that the schema was prepared
     */
    public Migrator(SqlSchema schema, boolean mayMigrate) {
        this.versions = new MigrationTable(schema);
        this.mayMigrate = mayMigrate;
    }

    /**
     * Migrates the database of a shard, if it needs it.
     *
     * @throws EventSqlException if the schema is older than this library needs and may not be migrated
     */
    public void migrate(Database database) throws SQLException {
        migrate(database, OF_SHARD);
    }

    /** The same for a database that has an outbox and is no shard: it gets nothing else. */
    public void migrateOutbox(Database database) throws SQLException {
        migrate(database, OF_OUTBOX);
    }

    private void migrate(Database database, List<Integer> needed) throws SQLException {
        Set<Integer> versions = database.call(this.versions::versions);
        if (versions.containsAll(needed)) {
            return; // a newer schema works with this library: schema N serves library N-1
        }
        if (!mayMigrate) {
            throw new EventSqlException("The database schema has version "
                    + versions.stream().max(Integer::compare).orElse(0) + ", this library needs "
                    + needed.getLast() + ", and settings.migrateSchema is off: apply the SQL files first");
        }
        int migrated = database.transaction(connection -> {
            database.bePatient(connection); // others may be migrating, and creating tables takes its time
            this.versions.lock(connection);
            return applyMissing(connection, needed);
        });
        LOG.info("Database schema migrated to version {}", migrated);
    }

    private int applyMissing(Connection connection, List<Integer> needed) throws SQLException {
        versions.createSchema(connection);
        Set<Integer> applied = versions.versions(connection);
        for (int number : needed) {
            if (!applied.contains(number)) {
                versions.apply(connection, read(FILES.get(number - 1) + ".sql"));
            }
        }
        return needed.getLast();
    }

    private static String read(String file) {
        try (InputStream in = Migrator.class.getResourceAsStream("/io/eventsql/schema/" + file)) {
            if (in == null) {
                throw new IllegalStateException("missing resource " + file);
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
