package io.eventsql.runner.database;

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
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("SELECT pg_backend_pid(), pg_current_snapshot()")) {
                row.next();
                return new HeldSnapshot(database, connection, row.getInt(1));
            }
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
        try (Connection other = database.getConnection();
                PreparedStatement statement = other.prepareStatement(AGE)) {
            statement.setInt(1, processId);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long age = row.getLong(1);
                if (age < 0) {
                    throw new SQLException("The snapshot was released before the end of the measurement");
                }
                return age;
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
