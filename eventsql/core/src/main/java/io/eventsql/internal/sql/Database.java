package io.eventsql.internal.sql;

import io.eventsql.EventSqlException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jooq.exception.DataAccessException;
import org.postgresql.PGConnection;

/**
 * Borrows connections of one database for one unit of work each, which runs in READ COMMITTED and with a network timeout.
 * Nothing that the library sets remains on a connection or on its session ({@link BorrowedConnection}, {@link
 * TransactionBegin}). Thread-safe.
 */
public final class Database {
    private static final Executor SAME_THREAD = Runnable::run;
    private static final int LONG_STATEMENT_TIMEOUT_MS = 60_000;
    /** The part of the network timeout for which a statement may wait for a lock, or read. */
    private static final double SERVER_TIMEOUT_SHARE = 0.75;

    private static final int POSTGRESQL_VERSION_MIN = 15;
    /** A column that switches off, until the transaction ends, a {@code transaction_timeout}, which version 17 introduced. */
    static final String NO_TRANSACTION_TIMEOUT = """
            CASE WHEN current_setting('server_version_num')::int >= 170000
                 THEN set_config('transaction_timeout', '0', true) END""";

    private static final String WITH_WARNINGS = "; " + CommitWarnings.SETTING;

    // Reads no table. OFFSET 0: the former value is read before it is replaced.
    private static final String SET_LOCK_TIMEOUT = """
            SELECT s.former, set_config('lock_timeout', ?, true)
            FROM (SELECT current_setting('lock_timeout') AS former OFFSET 0) AS s""";

    private final DataSource dataSource;
    private final int networkTimeoutMs;
    private final TransactionBegin begin;

    public Database(DataSource dataSource, Duration networkTimeout) {
        this(dataSource, Math.toIntExact(networkTimeout.toMillis()), new TransactionBegin());
    }

    private Database(DataSource dataSource, int networkTimeoutMs, TransactionBegin begin) {
        this.dataSource = dataSource;
        this.networkTimeoutMs = networkTimeoutMs;
        this.begin = begin;
    }

    /** Returns the same database with a network timeout of at most {@code time}. */
    public Database withNetworkTimeout(Duration time) {
        int shorter = Math.toIntExact(Math.min(networkTimeoutMs, Math.max(1, time.toMillis())));
        return new Database(dataSource, shorter, begin);
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

    /** Returns a connection in autocommit mode; closing it returns it to the pool as it was. */
    public BorrowedConnection borrow() throws NotSentException {
        try {
            return BorrowedConnection.prepare(dataSource.getConnection(), networkTimeoutMs);
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            throw new NotSentException(e);
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

    /**
     * Finds out in which isolation level transactions begin, and warns if it is not READ COMMITTED, because the library then
     * needs more round trips.
     *
     * @param label names the database in the warning
     */
    public void checkIsolation(String label) throws SQLException {
        try (BorrowedConnection borrowed = borrow()) {
            begin.check(borrowed.get(), label);
        }
    }

    /** Allows statements of this transaction to take a minute, or the network timeout if that is longer. */
    public void allowLongStatements(Connection connection) throws SQLException {
        allowLongStatements(connection, Duration.ofMillis(LONG_STATEMENT_TIMEOUT_MS));
    }

    /**
     * Allows statements of this transaction to take this time, or the network timeout if that is longer; three quarters of it on the
     * server, which would otherwise continue after the client has timed out.
     */
    public void allowLongStatements(Connection connection, Duration time) throws SQLException {
        int timeoutMs = Math.max(networkTimeoutMs, Math.toIntExact(time.toMillis()));
        connection.setNetworkTimeout(SAME_THREAD, timeoutMs);
        try (Statement statement = connection.createStatement()) {
            long serverMs = serverTimeoutMs(timeoutMs);
            statement.execute("SET LOCAL lock_timeout = " + serverMs + "; SET LOCAL statement_timeout = " + serverMs);
        }
    }

    private static long serverTimeoutMs(int networkTimeoutMs) {
        return Math.max(1, Math.round(networkTimeoutMs * SERVER_TIMEOUT_SHARE));
    }

    /**
     * Runs work of functions that limit how long they wait for locks by themselves: a statement that waits when the network
     * timeout elapses is not ended by that, and each retry would leave another one behind. Each statement is autocommitted,
     * unless READ COMMITTED is not the default: then all run in one transaction.
     */
    public <T> T call(Work<T> work) throws SQLException {
        return begin.isReadCommittedByDefault() ? callOutsideTransaction(work) : transaction(work);
    }

    /**
     * Runs work as {@link #call} does, which must not be in doubt afterwards.
     *
     * @param work in autocommit mode it has the server send warnings ({@link CommitWarnings}), and checks those of its statement
     *     ({@link SqlErrors#requireNoDoubt})
     * @throws AppendStatement.WarnedException if a warning leaves it in doubt whether the replicas have the transaction
     */
    public <T> T replicatedCall(Work<T> work) throws SQLException {
        return begin.isReadCommittedByDefault() ? callOutsideTransaction(work) : replicatedTransaction(work);
    }

    /** Runs a statement that no transaction may contain, in autocommit mode and whatever isolation level. */
    public <T> T callOutsideTransaction(Work<T> work) throws SQLException {
        try (BorrowedConnection borrowed = borrow()) {
            return run(work, borrowed.get());
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
        return transaction(work, result -> true, false, WITH_WARNINGS);
    }

    /**
     * Runs the work in one READ COMMITTED transaction, which is rolled back also if the work returns {@code false}.
     *
     * @return whether it was committed
     */
    public boolean transactionIf(Work<Boolean> work) throws SQLException {
        return transaction(work, result -> result, false, WITH_WARNINGS);
    }

    /**
     * Runs the work in one READ COMMITTED transaction.
     *
     * @throws AppendStatement.WarnedException if the commit's warning leaves it in doubt whether the replicas have the
     *     transaction
     */
    public <T> T replicatedTransaction(Work<T> work) throws SQLException {
        return transaction(work, result -> true, true, WITH_WARNINGS);
    }

    private <T> T transaction(Work<T> work, Predicate<T> commits, boolean failIfWarned, String limits)
            throws SQLException {
        try (BorrowedConnection borrowed = borrow()) {
            Connection connection = borrowed.get();
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
                if (!committed) {
                    borrowed.rollback(); // a pool may have closed it: the work's error is the one to report
                }
            }
        }
    }

    /** A wait for a lock ends before the client does, which would leave its statement behind. */
    private void begin(Connection connection, String limits) throws SQLException {
        TransactionBegin.begin(
                connection, networkTimeoutMs, "SET LOCAL lock_timeout = " + serverTimeoutMs(networkTimeoutMs) + limits);
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
     * @throws UnavailableException if no connection was available or it broke, unless that is the work's own doing ({@link
     *     #isOwnTimeout})
     */
    public boolean handlerTransaction(HandlerWork work) throws Exception {
        try (BorrowedConnection borrowed = borrowForHandler()) {
            Connection connection = borrowed.get();
            boolean committed = false;
            try {
                boolean commit = work.run(connection);
                if (commit) {
                    connection.commit();
                    committed = true;
                } else {
                    borrowed.rollback();
                }
                return commit;
            } catch (Throwable e) { // an Error, too: switching back to autocommit commits what was not rolled back
                boolean broken = !committed && !borrowed.rollback();
                if (broken && !isOwnTimeout(e) && e instanceof Exception) {
                    throw new UnavailableException(e);
                }
                throw e;
            }
        }
    }

    /**
     * Returns whether a connection broke because of the work in a handler's transaction: a statement exceeded the network timeout,
     * or the transaction a {@code transaction_timeout}, which only the handler can have set in it.
     */
    public static boolean isOwnTimeout(Throwable e) {
        return SqlErrors.isTimeout(e) || SqlErrors.isTransactionTimeout(e);
    }

    /** Returns a connection in a transaction that has just begun. */
    private BorrowedConnection borrowForHandler() throws UnavailableException {
        try {
            BorrowedConnection borrowed = borrow();
            try {
                TransactionBegin.begin(borrowed.get(), networkTimeoutMs, "");
                return borrowed;
            } catch (SQLException | RuntimeException e) {
                try (borrowed) {
                    borrowed.rollback();
                    throw e;
                }
            }
        } catch (SQLException e) {
            throw new UnavailableException(e);
        }
    }

    /**
     * Runs work of the library in a transaction of a handler, whose own waits for locks are not limited: the work's waits
     * end before the client times out, which would leave its statement behind. Afterwards the handler's limit applies
     * again, unless the work has failed, and with it the transaction.
     */
    public <T> T runInHandlerTransaction(Connection connection, Work<T> work) throws SQLException {
        String former = setLockTimeout(connection, serverTimeoutMs(networkTimeoutMs) + "ms");
        T result = run(work, connection);
        setLockTimeout(connection, former);
        return result;
    }

    /** Sets the lock timeout of the transaction; returns the former one. */
    private static String setLockTimeout(Connection connection, String timeout) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(SET_LOCK_TIMEOUT)) {
            statement.setString(1, timeout);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        }
    }

    /** Sets the network timeout of a connection that was borrowed by other code, until the result is closed. */
    public NetworkTimeout limit(Connection connection) throws SQLException {
        return NetworkTimeout.set(connection, Duration.ofMillis(networkTimeoutMs));
    }

    /** jOOQ wraps the driver's exceptions; callers get them unwrapped, and missing privileges explained. */
    private <T> T run(Work<T> work, Connection connection) throws SQLException {
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
    private SQLException explain(Connection connection, SQLException e) {
        switch (SqlErrors.state(e)) {
            case SqlErrors.READ_ONLY -> BorrowedConnection.discard(connection);
            case SqlErrors.NOT_READ_COMMITTED -> begin.rejected(e);
            default -> {}
        }
        return MissingPrivilegeException.explain(e, connection);
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
