package io.eventsql.runner.limits;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A long-running transaction: REPEATABLE READ, idle after taking a snapshot. Until {@link #close()}, VACUUM can remove
 * no row version that was alive when the transaction started, nor any later one.
 */
final class HeldSnapshot implements AutoCloseable {
    private final LimitsContext context;
    private final Connection connection;
    private final int processId;

    private HeldSnapshot(LimitsContext context, Connection connection, int processId) {
        this.context = context;
        this.connection = connection;
        this.processId = processId;
    }

    /** Opens the transaction on its own connection and takes the snapshot. */
    static HeldSnapshot take(LimitsContext context) throws SQLException {
        Connection connection = context.dataSource().getConnection();
        try {
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("SELECT pg_backend_pid(), pg_current_snapshot()")) {
                row.next();
                return new HeldSnapshot(context, connection, row.getInt(1));
            }
        } catch (SQLException e) {
            connection.close();
            throw e;
        }
    }

    /**
     * Returns how many transactions have started since the snapshot, as seen by another connection.
     *
     * @throws IllegalStateException if the transaction or its snapshot has ended
     */
    long ageTransactions() throws SQLException {
        long age = context.query(
                "SELECT coalesce(max(age(backend_xmin)), -1) FROM pg_stat_activity"
                        + " WHERE pid = ? AND state = 'idle in transaction'",
                processId);
        if (age < 0) {
            throw new IllegalStateException("The snapshot was released before the end of the measurement");
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
