package io.eventsql.internal.schema;

import io.eventsql.EventSqlException;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SchemaVersionTable;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.SqlSchema;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Migrates a database's schema to the version this library needs: applies the missing SQL files in one transaction,
 * under a transaction-scoped advisory lock. Thread-safe.
 */
public final class Migrator {
    private static final Logger LOG = LoggerFactory.getLogger(Migrator.class);
    private static final Duration LOCK_WAIT_MAX = Duration.ofMinutes(2);
    /** A file may build an index of many millions of rows. */
    private static final Duration FILE_TIME_MAX = Duration.ofMinutes(30);
    /** Publishers that queued behind a waiting lock continue in this time. */
    private static final long RETRY_MS = 2_000;

    private static final String FOLDER = "/io/eventsql/db/migration/";

    /**
     * What every database needs, then what a shard needs in addition. Both count from one sequence, and a released file
     * is never changed: the next release appends. A file of the outbox depends on no file of the shard.
     */
    private static final List<SqlFile> OUTBOX_FILES = List.of(
            new SqlFile(1, "outbox/V1__outbox.sql"),
            new SqlFile(14, "outbox/V14__outbox_erasure.sql"),
            new SqlFile(15, "outbox/V15__outbox_tombstones.sql"),
            new SqlFile(22, "outbox/V22__scheduled_events.sql"),
            new SqlFile(40, "outbox/V40__outbox_repairs.sql"),
            new SqlFile(42, "outbox/V42__erased_tombstones.sql"),
            new SqlFile(44, "outbox/V44__owner_of_functions.sql"));

    private static final List<SqlFile> SHARD_FILES = List.of(
            new SqlFile(1, "outbox/V1__outbox.sql"),
            new SqlFile(2, "shard/V2__event_log.sql"),
            new SqlFile(3, "shard/V3__transferred_events.sql"),
            new SqlFile(4, "shard/V4__consumers.sql"),
            new SqlFile(5, "shard/V5__offset_functions.sql"),
            new SqlFile(6, "shard/V6__lease_functions.sql"),
            new SqlFile(7, "shard/V7__maintenance_functions.sql"),
            new SqlFile(8, "shard/V8__segments.sql"),
            new SqlFile(9, "shard/V9__retention.sql"),
            new SqlFile(10, "shard/V10__consumer_status.sql"),
            new SqlFile(11, "shard/V11__erasure.sql"),
            new SqlFile(12, "shard/V12__compaction.sql"),
            new SqlFile(13, "shard/V13__latest.sql"),
            new SqlFile(14, "outbox/V14__outbox_erasure.sql"),
            new SqlFile(15, "outbox/V15__outbox_tombstones.sql"),
            new SqlFile(16, "shard/V16__delete_stream.sql"),
            new SqlFile(17, "shard/V17__append.sql"),
            new SqlFile(18, "shard/V18__fetch.sql"),
            new SqlFile(19, "shard/V19__blocks.sql"),
            new SqlFile(20, "shard/V20__fetch_heads.sql"),
            new SqlFile(21, "shard/V21__key_versions.sql"),
            new SqlFile(22, "outbox/V22__scheduled_events.sql"),
            new SqlFile(23, "shard/V23__fetch_streams.sql"),
            new SqlFile(24, "shard/V24__block_compaction.sql"),
            new SqlFile(25, "shard/V25__growth.sql"),
            new SqlFile(26, "shard/V26__replicas.sql"),
            new SqlFile(27, "shard/V27__sinks.sql"),
            new SqlFile(28, "shard/V28__keyed_growth.sql"),
            new SqlFile(29, "shard/V29__shards.sql"),
            new SqlFile(30, "shard/V30__parked_keys.sql"),
            new SqlFile(31, "shard/V31__stationary_streams.sql"),
            new SqlFile(32, "shard/V32__growth_after_moves.sql"),
            new SqlFile(33, "shard/V33__offset_commits.sql"),
            new SqlFile(34, "shard/V34__many_streams.sql"),
            new SqlFile(35, "shard/V35__moved_offsets.sql"),
            new SqlFile(36, "shard/V36__key_readers.sql"),
            new SqlFile(37, "shard/V37__frozen_segments.sql"),
            new SqlFile(38, "shard/V38__steady_maintenance.sql"),
            new SqlFile(39, "shard/V39__repairs.sql"),
            new SqlFile(40, "outbox/V40__outbox_repairs.sql"),
            new SqlFile(41, "shard/V41__more_repairs.sql"),
            new SqlFile(42, "outbox/V42__erased_tombstones.sql"),
            new SqlFile(43, "shard/V43__key_pages.sql"),
            new SqlFile(44, "outbox/V44__owner_of_functions.sql"),
            new SqlFile(45, "shard/V45__setting_names.sql"),
            new SqlFile(46, "shard/V46__seeks_in_order.sql"),
            new SqlFile(47, "shard/V47__publications_and_savepoints.sql"),
            new SqlFile(48, "shard/V48__plans_of_heartbeats.sql"));

    private record SqlFile(int version, String path) {
        String read() {
            try (InputStream in = Migrator.class.getResourceAsStream(FOLDER + path)) {
                if (in == null) {
                    throw new IllegalStateException("missing resource " + FOLDER + path);
                }
                return new String(in.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private final SchemaVersionTable table;
    private final boolean migrationEnabled;
    private final Duration fileTimeMax;

    /**
     * Creates a migrator for databases with this schema.
     *
     * @param migrationEnabled {@code false}: only check that the schema was prepared
     */
    public Migrator(SqlSchema schema, boolean migrationEnabled) {
        this(schema, migrationEnabled, FILE_TIME_MAX);
    }

    /** @param fileTimeMax how long a file may take, three quarters of it on the server */
    Migrator(SqlSchema schema, boolean migrationEnabled, Duration fileTimeMax) {
        this.table = new SchemaVersionTable(schema);
        this.migrationEnabled = migrationEnabled;
        this.fileTimeMax = fileTimeMax;
    }

    /**
     * Migrates the database of a shard if files are missing.
     *
     * @throws EventSqlException if files are missing and migration is disabled
     */
    public void migrate(Database database) throws SQLException {
        migrate(database, SHARD_FILES);
    }

    /** Migrates a database that has an outbox but is not a shard: applies the files of the outbox alone. */
    public void migrateOutbox(Database database) throws SQLException {
        migrate(database, OUTBOX_FILES);
    }

    /** Returns the SQL files that the database of a shard lacks. */
    public List<String> missingFiles(Database database) throws SQLException {
        List<SqlFile> missing = database.read(connection -> findMissing(connection, SHARD_FILES));
        return missing.stream().map(SqlFile::path).toList();
    }

    private void migrate(Database database, List<SqlFile> needed) throws SQLException {
        List<SqlFile> missing = database.read(connection -> findMissing(connection, needed));
        if (missing.isEmpty()) {
            return; // a newer schema works with this library: schema N serves library N-1
        }
        boolean isNew = missing.size() == needed.size();
        List<String> others = isNew ? database.read(table::findOtherSchemas) : List.of();
        if (!migrationEnabled) {
            throw new EventSqlException("The schema " + table.schema().name() + " of the database lacks "
                    + missing.stream().map(SqlFile::path).collect(Collectors.joining(", "))
                    + ", and settings.migrateSchema is off; apply these SQL files first, or switch it on"
                    + (others.isEmpty()
                            ? ""
                            : ". The database has EventSQL's tables in the schema " + String.join(", ", others)
                                    + ": is settings.schema right?"));
        }
        if (!others.isEmpty()) {
            LOG.warn(
                    "Creating EventSQL's tables in the new schema {}, without any stream, although the database has them in"
                            + " the schema {}. If that was not intended, correct settings.schema and drop the new schema",
                    table.schema().name(),
                    String.join(", ", others));
        }
        List<SqlFile> applied = applyMissing(database, needed);
        if (!applied.isEmpty()) {
            LOG.info(
                    "Schema {} migrated to version {}",
                    table.schema().name(),
                    applied.getLast().version());
        }
    }

    /**
     * Applies the missing files in one transaction. A file that waits too long for a lock, after a transaction that reads a
     * stream, is rolled back and retried, because publishers queue behind the waiting lock.
     */
    private List<SqlFile> applyMissing(Database database, List<SqlFile> needed) throws SQLException {
        long deadline = System.nanoTime() + LOCK_WAIT_MAX.toNanos();
        for (boolean first = true; ; first = false) {
            try {
                return database.transaction(connection -> {
                    database.allowLongStatements(connection, fileTimeMax);
                    table.lock(connection); // for as long: another process may apply such a file
                    table.limitWaits(connection);
                    table.createSchemaIfMissing(connection);
                    List<SqlFile> stillMissing = findMissing(connection, needed);
                    if (!stillMissing.isEmpty()) {
                        table.quoteSchemaName(connection);
                    }
                    for (SqlFile file : stillMissing) {
                        table.apply(connection, file.read());
                    }
                    return stillMissing;
                });
            } catch (SQLException e) {
                if (SqlErrors.state(e).equals(SqlErrors.QUERY_CANCELED) || SqlErrors.isTimeout(e)) {
                    throw tookTooLong(e);
                }
                if (!SqlErrors.isLockConflict(e) || System.nanoTime() > deadline) {
                    throw e;
                }
                if (first) {
                    LOG.warn(
                            "Migrating schema {} waits for transactions that hold locks on its tables; retrying every {} ms"
                                    + " for up to {}: {}",
                            table.schema().name(),
                            RETRY_MS,
                            LOCK_WAIT_MAX,
                            SqlErrors.message(e));
                }
                pause();
            }
        }
    }

    private SQLException tookTooLong(SQLException e) {
        return new SQLException(
                "Migrating schema " + table.schema().name()
                        + " was canceled, at the latest after " + fileTimeMax
                        + ", and rolled back. Apply the missing SQL files with psql, which has no such limit (docs/schema.md): "
                        + SqlErrors.message(e),
                e.getSQLState(),
                e);
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new EventSqlException("Interrupted while the schema was being migrated; retry", e);
        }
    }

    private List<SqlFile> findMissing(Connection connection, List<SqlFile> needed) {
        Set<Integer> versions = table.findVersions(connection);
        return needed.stream()
                .filter(file -> !versions.contains(file.version()))
                .toList();
    }
}
