package io.eventsql.runner.limits;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;

/**
 * A long-running transaction: REPEATABLE READ, idle after taking a snapshot. Until {@link #close()}, VACUUM can remove
 * no row version that was alive when the transaction started, nor any later one.
 */
final class HeldSnapshot implements AutoCloseable {
    private final DataSource dataSource;
    private final Connection connection;
    private final int processId;

    private HeldSnapshot(DataSource dataSource, Connection connection, int processId) {
        this.dataSource = dataSource;
        this.connection = connection;
        this.processId = processId;
    }

    /** Opens the transaction on its own connection and takes the snapshot. */
    static HeldSnapshot take(DataSource dataSource) throws SQLException {
        Connection connection = dataSource.getConnection();
        try {
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("SELECT pg_backend_pid(), pg_current_snapshot()")) {
                row.next();
                return new HeldSnapshot(dataSource, connection, row.getInt(1));
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
        String sql = "SELECT age(backend_xmin) FROM pg_stat_activity WHERE pid = ? AND state = 'idle in transaction'";
        try (Connection other = dataSource.getConnection();
                PreparedStatement statement = other.prepareStatement(sql)) {
            statement.setInt(1, processId);
            try (ResultSet row = statement.executeQuery()) {
                if (row.next()) {
                    long age = row.getLong(1);
                    if (!row.wasNull()) {
                        return age;
                    }
                }
                throw new IllegalStateException("The snapshot was released before the end of the measurement");
            }
        }
    }

    @Override
    public void close() throws SQLException {
        try (connection) {
            connection.rollback();
        }
    }
}
