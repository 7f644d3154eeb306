package io.eventsql.runner.sample;

import io.eventsql.benchmark.settings.DatabaseAddress;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/** Samples the counters of a PostgreSQL database over its own connection, which is reopened after a failure. */
final class DatabaseProbe implements Probe {
    private static final double BYTES_PER_MB = 1e6;

    /** The first version with {@code pg_stat_checkpointer}. */
    private static final int VERSION_WITH_CHECKPOINTER = 17;

    private static final String CHECKPOINTS = "(SELECT num_timed + num_requested FROM pg_stat_checkpointer)";
    private static final String CHECKPOINTS_BEFORE =
            "(SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter)";

    private final String name;
    private final DatabaseAddress address;
    private final RateCounter wal = new RateCounter();
    private final RateCounter commits = new RateCounter();
    private @Nullable Connection connection;

    DatabaseProbe(String name, DatabaseAddress address) {
        this.name = name;
        this.address = address;
    }

    /** Reads counters in shared memory and the sizes of the database's files. Takes no lock that blocks others. */
    private static String counters(String checkpoints) {
        return "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal_bytes,"
                + " pg_database_size(current_database()) AS database_bytes,"
                + " dead_tuples, autovacuums,"
                + " " + checkpoints + " AS checkpoints,"
                + " (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits"
                + " FROM (SELECT coalesce(sum(n_dead_tup), 0) AS dead_tuples,"
                + " coalesce(sum(autovacuum_count), 0) AS autovacuums FROM pg_stat_user_tables) AS tables";
    }

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
            }
            return sample(open, nowNanos);
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
        try (PreparedStatement statement = open.prepareStatement(sql);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return Arrays.<@Nullable Double>asList(
                    wal.update(row.getDouble("wal_bytes") / BYTES_PER_MB, nowNanos),
                    row.getDouble("database_bytes") / BYTES_PER_MB,
                    row.getDouble("dead_tuples"),
                    row.getDouble("autovacuums"),
                    row.getDouble("checkpoints"),
                    commits.update(row.getDouble("commits"), nowNanos));
        }
    }

    @Override
    public void close() {
        Connection open = connection;
        connection = null;
        if (open != null) {
            try {
                open.close();
            } catch (SQLException e) {
                // The connection is no longer needed.
            }
        }
    }
}
