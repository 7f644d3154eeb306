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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings a database's schema to the version this library needs, from the numbered SQL files, in one transaction under a
 * transaction-scoped advisory lock. Thread-safe.
 */
public final class Migrator {
    private static final Logger LOG = LoggerFactory.getLogger(Migrator.class);

    /** Numbered from 1 without gaps; a file that was released is never changed. */
    private static final List<String> FILES = List.of("V1__event_log", "V2__consumers");

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
     * Migrates a database, if it needs it.
     *
     * @throws EventSqlException if the schema is older than this library needs and may not be migrated
     */
    public void migrate(Database database) throws SQLException {
        int version = database.call(versions::version);
        if (version >= FILES.size()) {
            return; // a newer schema works with this library: schema N serves library N-1
        }
        if (!mayMigrate) {
            throw new EventSqlException("The database schema has version " + version + ", this library needs "
                    + FILES.size() + ", and settings.migrateSchema is off: apply the SQL files first");
        }
        int migrated = database.transaction(connection -> {
            versions.lock(connection);
            return applyMissing(connection);
        });
        LOG.info("Database schema migrated to version {}", migrated);
    }

    private int applyMissing(Connection connection) throws SQLException {
        versions.createSchema(connection);
        for (int next = versions.version(connection) + 1; next <= FILES.size(); next++) {
            versions.apply(connection, read(FILES.get(next - 1) + ".sql"));
        }
        return versions.version(connection);
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
