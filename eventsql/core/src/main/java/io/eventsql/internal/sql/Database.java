package io.eventsql.internal.sql;

import io.eventsql.EventSqlException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jooq.exception.DataAccessException;
import org.postgresql.PGConnection;

/**
 * Borrows connections of one database for one unit of work each, in the state the library needs: autocommit, READ
 * COMMITTED, with a network timeout. Thread-safe.
 */
public final class Database {
    private static final Executor SAME_THREAD = Runnable::run;
    private static final int LONG_STATEMENT_TIMEOUT_MS = 60_000;
    /** The part of the network timeout for which a statement may wait for a lock, or read. */
    private static final double SERVER_TIMEOUT_SHARE = 0.75;

    private static final int POSTGRESQL_VERSION_MIN = 15;

    private final DataSource dataSource;
    private final int networkTimeoutMs;
    /** Set once a connection was found in another isolation level: a check of each one would cost a round trip. */
    private volatile boolean setReadCommitted;

    public Database(DataSource dataSource, Duration networkTimeout) {
        this.dataSource = dataSource;
        this.networkTimeoutMs = Math.toIntExact(networkTimeout.toMillis());
    }

    /** Returns the same database with a network timeout of at most {@code time}. */
    public Database withNetworkTimeout(Duration time) {
        Duration shorter = Duration.ofMillis(Math.min(networkTimeoutMs, Math.max(1, time.toMillis())));
        Database other = new Database(dataSource, shorter);
        other.setReadCommitted = setReadCommitted;
        return other;
    }

    /** Returns the user's data source. */
    public DataSource dataSource() {
        return dataSource;
    }

    /** Work on one connection. */
    @FunctionalInterface
    public interface Work<T> {
        T run(Connection connection) throws SQLException;
    }

    /** Returns a connection in autocommit mode; closing it returns it to the pool. */
    public Connection borrow() throws NotSentException {
        try {
            return prepare(dataSource.getConnection());
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            throw new NotSentException(e);
        }
    }

    private Connection prepare(Connection connection) throws SQLException {
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

    /**
     * Checks that this is a database that the library can work with.
     *
     * @param label names the database in the exception
     * @throws EventSqlException if it is none
     */
    public void requirePostgreSql(String label) throws SQLException {
        try (Connection connection = dataSource.getConnection()) {
            DatabaseMetaData metaData = connection.getMetaData();
            String product = metaData.getDatabaseProductName();
            String found =
                    "The " + label + " is " + product + " " + metaData.getDatabaseProductVersion() + ", but EventSQL";
            if (!product.equals("PostgreSQL") || metaData.getDatabaseMajorVersion() < POSTGRESQL_VERSION_MIN) {
                throw new EventSqlException(found + " needs PostgreSQL " + POSTGRESQL_VERSION_MIN
                        + " or later; check the data source's URL");
            }
            if (!connection.isWrapperFor(PGConnection.class)) {
                throw new EventSqlException(
                        found + " needs its JDBC driver org.postgresql, whose connections the data source"
                                + " must return directly or as wrappers; this one returns "
                                + connection.getClass().getName());
            }
        }
    }

    /** Sets every connection borrowed from now on to READ COMMITTED, because the pool's default is another level. */
    public void requireReadCommitted() {
        setReadCommitted = true;
    }

    /** Allows statements of this transaction to take a minute, or the network timeout if that is longer. */
    public void allowLongStatements(Connection connection) throws SQLException {
        int timeoutMs = Math.max(networkTimeoutMs, LONG_STATEMENT_TIMEOUT_MS);
        connection.setNetworkTimeout(SAME_THREAD, timeoutMs);
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET LOCAL lock_timeout = " + serverTimeoutMs(timeoutMs));
        }
    }

    private static long serverTimeoutMs(int networkTimeoutMs) {
        return Math.max(1, Math.round(networkTimeoutMs * SERVER_TIMEOUT_SHARE));
    }

    /**
     * Runs the work on a connection in autocommit mode. For functions that limit how long they wait for locks by
     * themselves: a statement that waits when the network timeout elapses is not ended by that, and each retry would
     * leave another one behind.
     */
    public <T> T call(Work<T> work) throws SQLException {
        try (Connection connection = borrow()) {
            return run(work, connection);
        }
    }

    /**
     * Runs statements that only read, other than those of {@link #call}: in a transaction, because only there the server
     * can limit the time of a statement. The limit would also end a commit that waits for replicas, so the work must not
     * write. It may idle for a minute: it keeps no row from others.
     */
    public <T> T read(Work<T> work) throws SQLException {
        String limits = "; SET LOCAL statement_timeout = " + serverTimeoutMs(networkTimeoutMs)
                + "; SET LOCAL idle_in_transaction_session_timeout = "
                + Math.max(networkTimeoutMs, LONG_STATEMENT_TIMEOUT_MS);
        return transaction(work, result -> true, false, limits);
    }

    /**
     * Runs the work in one READ COMMITTED transaction: committed if it returns, rolled back if it throws. Between two
     * statements the work must not idle for longer than the network timeout. No statement waits for a lock for that long.
     */
    public <T> T transaction(Work<T> work) throws SQLException {
        return transaction(work, result -> true, false, "");
    }

    /**
     * Runs the work in one READ COMMITTED transaction, which is rolled back also if the work returns {@code false}.
     *
     * @return whether it was committed
     */
    public boolean transactionIf(Work<Boolean> work) throws SQLException {
        return transaction(work, result -> result, false, "");
    }

    /**
     * Runs the work in one READ COMMITTED transaction.
     *
     * @throws AppendStatement.WarnedException if the commit's warning leaves it in doubt whether the replicas have the
     *     transaction
     */
    public <T> T replicatedTransaction(Work<T> work) throws SQLException {
        return transaction(work, result -> true, true, "");
    }

    private <T> T transaction(Work<T> work, Predicate<T> commits, boolean failIfWarned, String limits)
            throws SQLException {
        try (Connection connection = borrow()) {
            connection.setAutoCommit(false);
            boolean committed = false;
            try {
                begin(connection, limits);
                T result = run(work, connection);
                if (commits.test(result)) {
                    connection.clearWarnings();
                    connection.commit();
                    committed = true;
                    if (failIfWarned) {
                        SqlErrors.requireNoDoubt(connection.getWarnings());
                    }
                }
                return result;
            } finally {
                if (committed
                        || rollback(connection)) { // a pool may have closed it: the work's error is the one to report
                    connection.setAutoCommit(true);
                }
            }
        }
    }

    /**
     * Sends the first statements of a transaction, which set it to READ COMMITTED and leave nothing on the session: behind
     * a pooler, other clients use that next. A process that freezes in its transaction must not keep its locks, so the
     * server ends it after this idle time; and a wait for a lock ends before the client does, which would leave its
     * statement behind. One round trip.
     */
    private void begin(Connection connection, String limits) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                    + " SET LOCAL idle_in_transaction_session_timeout = " + networkTimeoutMs + ";"
                    + " SET LOCAL lock_timeout = " + serverTimeoutMs(networkTimeoutMs) + limits);
        }
    }

    /** A user's work in a transaction. */
    @FunctionalInterface
    public interface HandlerWork {
        /** Returns whether to commit. If it returns {@code false} or throws, the transaction is rolled back. */
        boolean run(Connection connection) throws Exception;
    }

    /** No connection was available, or the connection broke; the cause need not be the work itself. */
    public static final class UnavailableException extends SQLException {
        private static final long serialVersionUID = 1L;

        public UnavailableException(Throwable cause) {
            super(cause.toString(), "08006", cause);
        }
    }

    /**
     * Runs a user's handler in one READ COMMITTED transaction.
     *
     * @return whether it was committed
     * @throws UnavailableException if no connection was available or it broke, unless a statement of the handler
     *     exceeded the network timeout
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
            } catch (Throwable e) { // an Error, too: switching back to autocommit commits what was not rolled back
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

    /** Sets the network timeout of a connection that was borrowed by other code, until the result is closed. */
    public NetworkTimeout limit(Connection connection) throws SQLException {
        return NetworkTimeout.set(connection, Duration.ofMillis(networkTimeoutMs));
    }

    /** jOOQ wraps the driver's exceptions; callers get them unwrapped, and missing privileges explained. */
    private static <T> T run(Work<T> work, Connection connection) throws SQLException {
        try {
            return work.run(connection);
        } catch (DataAccessException e) {
            SQLException cause = e.getCause(SQLException.class);
            throw cause == null ? new SQLException(e) : explain(connection, cause);
        } catch (SQLException e) {
            throw explain(connection, e);
        }
    }

    /** Returns the error with its remedy. Discards a connection to a standby: a new one may find the primary server. */
    private static SQLException explain(Connection connection, SQLException e) {
        if (SqlErrors.state(e).equals(SqlErrors.READ_ONLY)) {
            discard(connection);
        }
        return MissingPrivilegeException.explain(e, connection);
    }

    /** Closes a borrowed connection for good, so that its pool does not lend it again. */
    private static void discard(Connection connection) {
        try {
            connection.abort(SAME_THREAD);
            connection.getAutoCommit(); // a pool notices that a connection is closed when a call fails
        } catch (SQLException | RuntimeException e) {
            System.getLogger(Database.class.getName()).log(System.Logger.Level.DEBUG, "The connection is closed", e);
        }
    }

    /** Rolls back the connection's transaction. Returns whether the connection still works. */
    public static boolean rollback(Connection connection) {
        try {
            connection.rollback();
            return true;
        } catch (SQLException e) {
            // The connection is broken, so the server rolls back. The first error is the one to report.
            System.getLogger(Database.class.getName())
                    .log(System.Logger.Level.DEBUG, "Rollback failed on a broken connection", e);
            return false;
        }
    }
}
