package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jooq.exception.DataAccessException;

/**
 * Borrows connections of one database for one piece of work each, in the state the library needs: autocommit, READ
 * COMMITTED, with a limit on how long an answer is waited for. Thread-safe.
 */
public final class Database {
    private static final Executor SAME_THREAD = Runnable::run;
    private static final int PATIENCE_MS = 60_000;

    private final DataSource dataSource;
    private final int networkTimeoutMs;
    /** Set once a connection was found in another isolation level: asking each time would cost a round trip. */
    private volatile boolean setReadCommitted;

    public Database(DataSource dataSource, Duration networkTimeout) {
        this.dataSource = dataSource;
        this.networkTimeoutMs = Math.toIntExact(networkTimeout.toMillis());
    }

    /** The same database, whose answers are waited for no longer than this. */
    public Database answeringWithin(Duration time) {
        Duration shorter = Duration.ofMillis(Math.min(networkTimeoutMs, Math.max(1, time.toMillis())));
        Database other = new Database(dataSource, shorter);
        other.setReadCommitted = setReadCommitted;
        return other;
    }

    /** The user's data source. */
    public DataSource dataSource() {
        return dataSource;
    }

    /** Work on one connection. */
    @FunctionalInterface
    public interface Work<T> {
        T run(Connection connection) throws SQLException;
    }

    /** A connection in autocommit mode; closing it gives it back. */
    public Connection borrow() throws SQLException {
        Connection connection = dataSource.getConnection();
        try {
            if (!connection.getAutoCommit()) {
                connection.setAutoCommit(true);
            }
            if (setReadCommitted) {
                connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            }
            connection.setNetworkTimeout(SAME_THREAD, networkTimeoutMs);
            return connection;
        } catch (SQLException | RuntimeException e) {
            try (connection) {
                throw e;
            }
        }
    }

    /** From now on every borrowed connection is set to READ COMMITTED: this pool's default is another level. */
    public void requireReadCommitted() {
        setReadCommitted = true;
    }

    /** Lets statements of this borrowed connection take a minute, or the network time-out if that is longer. */
    public void bePatient(Connection connection) throws SQLException {
        connection.setNetworkTimeout(SAME_THREAD, Math.max(networkTimeoutMs, PATIENCE_MS));
    }

    /** Runs the work on a connection in autocommit mode. */
    public <T> T call(Work<T> work) throws SQLException {
        try (Connection connection = borrow()) {
            return run(work, connection);
        }
    }

    /**
     * Runs the work in one READ COMMITTED transaction: committed if it returns, rolled back if it throws. Between its
     * statements it must not be silent for longer than an answer is waited for.
     */
    public <T> T transaction(Work<T> work) throws SQLException {
        return transaction(work, result -> true, false);
    }

    /** The same, rolled back also if the work returns {@code false}; returns whether it was committed. */
    public boolean transactionIf(Work<Boolean> work) throws SQLException {
        return transaction(work, result -> result, false);
    }

    /** The same, but fails also if the database warned at the commit: then the replicas may not have it. */
    public <T> T replicatedTransaction(Work<T> work) throws SQLException {
        return transaction(work, result -> true, true);
    }

    private <T> T transaction(Work<T> work, Predicate<T> commits, boolean failIfWarned) throws SQLException {
        try (Connection connection = borrow()) {
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            connection.setAutoCommit(false);
            boolean committed = false;
            try {
                limitSilence(connection);
                T result = run(work, connection);
                if (commits.test(result)) {
                    connection.clearWarnings();
                    connection.commit();
                    committed = true;
                    SQLException warning = connection.getWarnings();
                    if (failIfWarned && warning != null) {
                        throw new AppendStatement.WarnedException(warning);
                    }
                }
                return result;
            } finally {
                if (!committed) {
                    rollback(connection);
                }
                connection.setAutoCommit(true);
            }
        }
    }

    /** A process that stands still in its transaction must not keep its locks: the server ends it after this. */
    private void limitSilence(Connection connection) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("SELECT set_config('idle_in_transaction_session_timeout', ?, true)")) {
            statement.setString(1, Integer.toString(networkTimeoutMs));
            statement.execute();
        }
    }

    /** A user's work in a transaction. */
    @FunctionalInterface
    public interface HandlerWork {
        /** Returns whether to commit; otherwise, and when it throws, everything is rolled back. */
        boolean run(Connection connection) throws Exception;
    }

    /** No connection could be had, or it broke: the work itself may have nothing to do with it. */
    public static final class UnavailableException extends SQLException {
        private static final long serialVersionUID = 1L;

        public UnavailableException(Throwable cause) {
            super(cause.toString(), "08006", cause);
        }
    }

    /**
     * Runs a user's handler in one READ COMMITTED transaction; returns whether it was committed.
     *
     * @throws UnavailableException if there was no connection or it broke, unless the handler's own statement took longer
     *     than an answer is waited for
     */
    public boolean handlerTransaction(HandlerWork work) throws Exception {
        try (Connection connection = borrowForHandler()) {
            boolean broken = false;
            boolean committed = false;
            try {
                connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
                connection.setAutoCommit(false);
                boolean commit = work.run(connection);
                if (commit) {
                    connection.commit();
                    committed = true;
                } else {
                    broken = !rollback(connection);
                }
                return commit;
            } catch (Throwable e) { // an Error, too: back in autocommit mode, what was not rolled back is committed
                broken = !committed && !rollback(connection);
                if (broken && !SqlErrors.isTimeout(e) && e instanceof Exception) {
                    throw new UnavailableException(e);
                }
                throw e;
            } finally {
                if (!broken) {
                    connection.setAutoCommit(true);
                }
            }
        }
    }

    private Connection borrowForHandler() throws UnavailableException {
        try {
            return borrow();
        } catch (SQLException e) {
            throw new UnavailableException(e);
        }
    }

    /** Limits how long an answer is waited for on a connection that somebody else has borrowed. */
    public void limitAnswers(Connection connection) throws SQLException {
        connection.setNetworkTimeout(SAME_THREAD, networkTimeoutMs);
    }

    /** Undoes what was done in a transaction that somebody else has begun; returns whether the connection still works. */
    public boolean rollbackForeign(Connection connection) {
        return rollback(connection);
    }

    /** jOOQ wraps what the driver throws: callers get the driver's exception in any case. */
    private static <T> T run(Work<T> work, Connection connection) throws SQLException {
        try {
            return work.run(connection);
        } catch (DataAccessException e) {
            SQLException cause = e.getCause(SQLException.class);
            throw cause == null ? new SQLException(e) : cause;
        }
    }

    /** Returns whether the connection still works. */
    private static boolean rollback(Connection connection) {
        try {
            connection.rollback();
            return true;
        } catch (SQLException e) {
            // The connection is broken: the server rolls back by itself, and the first error is the one to report.
            System.getLogger(Database.class.getName()).log(System.Logger.Level.DEBUG, "rollback failed", e);
            return false;
        }
    }
}
