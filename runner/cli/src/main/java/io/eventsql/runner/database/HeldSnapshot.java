package io.eventsql.runner.database;

import io.eventsql.runner.driver.Jdbc;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * A long-running transaction: REPEATABLE READ, idle after taking a snapshot. Until {@link #close()}, VACUUM can remove
 * no row version that was alive when the transaction started, nor any later one.
 */
public final class HeldSnapshot implements AutoCloseable {
    /** Reads shared memory. Takes no lock that blocks others. */
    private static final String AGE = "SELECT coalesce(max(age(backend_xmin)), -1) FROM pg_stat_activity"
            + " WHERE pid = ? AND state = 'idle in transaction'";

    private final DataSource database;
    private final Connection connection;
    private final int processId;

    private HeldSnapshot(DataSource database, Connection connection, int processId) {
        this.database = database;
        this.connection = connection;
        this.processId = processId;
    }

    /** Opens the transaction on its own connection and takes the snapshot. */
    public static HeldSnapshot take(DataSource database) throws SQLException {
        Connection connection = database.getConnection();
        try {
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setAutoCommit(false);
            int processId = Jdbc.rows(
                            connection, "SELECT pg_backend_pid(), pg_current_snapshot()", row -> row.getInt(1))
                    .getFirst();
            return new HeldSnapshot(database, connection, processId);
        } catch (SQLException e) {
            connection.close();
            throw e;
        }
    }

    /**
     * Returns how many transactions have started since the snapshot, as seen by another connection.
     *
     * @throws SQLException if the transaction or its snapshot has ended
     */
    public long ageTransactions() throws SQLException {
        long age = Jdbc.number(database, AGE, processId);
        if (age < 0) {
            throw new SQLException("The snapshot was released before the end of the measurement");
        }
        return age;
    }

    @Override
    public void close() throws SQLException {
        try (connection) {
            connection.rollback();
        }
    }
}
