package io.eventsql.runner.sample;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.driver.Jdbc;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * Samples the counters of a PostgreSQL database over its own connection, which is reopened after a failure. Size, dead
 * tuples and vacuums are read every {@value #TABLES_SECONDS} seconds, and repeated in between: they take a look at every
 * file and table, of which a stream has many.
 */
final class DatabaseProbe implements Probe {
    static final int TABLES_SECONDS = 10;

    private static final long TABLES_NANOS = Duration.ofSeconds(TABLES_SECONDS).toNanos();
    private static final double BYTES_PER_MB = 1e6;

    /** The first version with {@code pg_stat_checkpointer}. */
    private static final int VERSION_WITH_CHECKPOINTER = 17;

    private static final String CHECKPOINTS = "(SELECT num_timed + num_requested FROM pg_stat_checkpointer)";
    private static final String CHECKPOINTS_BEFORE =
            "(SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter)";

    private final String name;
    private final DatabaseAddress address;
    private final ProcessTree processes;
    private final RateCounter wal = new RateCounter();
    private final RateCounter commits = new RateCounter();
    private @Nullable Connection connection;
    private @Nullable Tables tables;
    private int backend;
    private long closedCpuNanos;
    private long cpuNanos;

    /** @param processes the processes of this machine, on which the database may run */
    DatabaseProbe(String name, DatabaseAddress address, ProcessTree processes) {
        this.name = name;
        this.address = address;
        this.processes = processes;
    }

    /** What is read every {@value #TABLES_SECONDS} seconds. */
    private record Tables(long atNanos, double databaseMb, double deadTuples, double autovacuums) {}

    /** Reads counters in shared memory. Takes no lock that blocks others. */
    private static String counters(String checkpoints) {
        return "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal_bytes,"
                + " " + checkpoints + " AS checkpoints,"
                + " (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits";
    }

    /** Reads the sizes of the database's files and the statistics of its tables. Takes no lock that blocks others. */
    private static final String TABLES = "SELECT pg_database_size(current_database()), coalesce(sum(n_dead_tup), 0),"
            + " coalesce(sum(autovacuum_count), 0) FROM pg_stat_user_tables";

    @Override
    public List<String> columns() {
        return List.of(
                name + ".wal_mb_per_second",
                name + ".database_mb",
                name + ".dead_tuples",
                name + ".autovacuums",
                name + ".checkpoints",
                name + ".commits_per_second");
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) throws SQLException {
        Connection open = connection;
        try {
            if (open == null) {
                open = connect();
                connection = open;
                backend = open.unwrap(PGConnection.class).getBackendPID();
            }
            List<@Nullable Double> sampled = sample(open, nowNanos);
            cpuNanos = closedCpuNanos + processes.cpuNanos(backend, "postgres");
            return sampled;
        } catch (SQLException e) {
            close();
            throw e;
        }
    }

    private Connection connect() throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", address.user());
        properties.setProperty("password", address.password());
        properties.setProperty("ApplicationName", "runner-sampler");
        properties.setProperty("connectTimeout", "5");
        properties.setProperty("socketTimeout", "5");
        return DriverManager.getConnection(address.jdbcUrl(), properties);
    }

    private List<@Nullable Double> sample(Connection open, long nowNanos) throws SQLException {
        boolean hasCheckpointer = open.getMetaData().getDatabaseMajorVersion() >= VERSION_WITH_CHECKPOINTER;
        String sql = counters(hasCheckpointer ? CHECKPOINTS : CHECKPOINTS_BEFORE);
        Tables known = tables;
        if (known == null || nowNanos - known.atNanos >= TABLES_NANOS) {
            known = readTables(open, nowNanos);
            tables = known;
        }
        try (PreparedStatement statement = open.prepareStatement(sql);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return Arrays.<@Nullable Double>asList(
                    wal.update(row.getDouble("wal_bytes") / BYTES_PER_MB, nowNanos),
                    known.databaseMb,
                    known.deadTuples,
                    known.autovacuums,
                    row.getDouble("checkpoints"),
                    commits.update(row.getDouble("commits"), nowNanos));
        }
    }

    private static Tables readTables(Connection open, long nowNanos) throws SQLException {
        return Jdbc.rows(
                        open,
                        TABLES,
                        row -> new Tables(
                                nowNanos, row.getDouble(1) / BYTES_PER_MB, row.getDouble(2), row.getDouble(3)))
                .getFirst();
    }

    @Override
    public long otherCpuNanos() {
        return cpuNanos;
    }

    @Override
    public void close() {
        Connection open = connection;
        connection = null;
        closedCpuNanos = cpuNanos;
        if (open != null) {
            try {
                open.close();
            } catch (SQLException e) {
                // The connection is no longer needed.
            }
        }
    }
}
