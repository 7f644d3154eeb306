package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection of the user's pool, in autocommit mode and with the library's network timeout. Closing it restores what it
 * had before, because not every pool does, and returns it. Used by one thread.
 */
public final class BorrowedConnection implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BorrowedConnection.class);
    private static final Executor SAME_THREAD = Runnable::run;

    private final Connection connection;
    private final boolean formerAutoCommit;
    private final int formerNetworkTimeoutMs;
    private boolean broken;

    private BorrowedConnection(Connection connection) throws SQLException {
        this.connection = connection;
        this.formerAutoCommit = connection.getAutoCommit();
        this.formerNetworkTimeoutMs = connection.getNetworkTimeout();
    }

    /** Prepares a connection that was borrowed; returns it to its pool if that fails. */
    static BorrowedConnection prepare(Connection connection, int networkTimeoutMs) throws SQLException {
        BorrowedConnection borrowed;
        try {
            borrowed = new BorrowedConnection(connection);
        } catch (Throwable e) {
            try (connection) {
                throw e;
            }
        }
        try {
            if (!borrowed.formerAutoCommit) {
                connection.setAutoCommit(true);
            }
            connection.setNetworkTimeout(SAME_THREAD, networkTimeoutMs);
            return borrowed;
        } catch (Throwable e) {
            try (borrowed) {
                throw e;
            }
        }
    }

    /** Returns the connection. It must not be closed. */
    public Connection get() {
        return connection;
    }

    /**
     * Rolls back the transaction.
     *
     * @return whether the connection still works; if not, its pool closes it
     */
    boolean rollback() {
        broken = !Database.rollback(connection);
        return !broken;
    }

    /** Restores the former settings, unless the connection is broken, and returns the connection to its pool. */
    @Override
    public void close() throws SQLException {
        try (connection) {
            if (!broken && !connection.isClosed()) {
                restore();
            }
        }
    }

    private void restore() {
        try {
            connection.setNetworkTimeout(SAME_THREAD, formerNetworkTimeoutMs);
            if (connection.getAutoCommit() != formerAutoCommit) {
                connection.setAutoCommit(formerAutoCommit);
            }
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            LOG.debug("The settings of a connection could not be restored; closing it", e);
            discard(connection);
        }
    }

    /** Closes a borrowed connection for good, so that its pool does not lend it again. */
    static void discard(Connection connection) {
        try {
            connection.abort(SAME_THREAD);
            connection.getAutoCommit(); // a pool notices that a connection is closed when a call fails
        } catch (SQLException | RuntimeException e) {
            LOG.debug("The connection is closed", e);
        }
    }
}
