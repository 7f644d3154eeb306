package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How statements of one database get READ COMMITTED, which the library's functions require. Where that is the default, a
 * single statement is autocommitted. Elsewhere each needs a transaction of its own: a function cannot change the level it
 * runs in, and a setting of the session would remain for the next client of a pooled connection. Thread-safe.
 */
final class TransactionBegin {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionBegin.class);
    private static final String READ_COMMITTED = "read committed";
    private static final String FIND_ISOLATION =
            "SELECT current_setting('transaction_isolation'), quote_ident(session_user)";

    private volatile String database = "the database";
    private volatile String role = "of the pool";
    private volatile boolean readCommittedByDefault = true;

    /** Returns whether a statement in autocommit mode runs in READ COMMITTED, as far as it is known. */
    boolean isReadCommittedByDefault() {
        return readCommittedByDefault;
    }

    /**
     * Reads the isolation level of autocommitted statements.
     *
     * @param label names the database in log lines
     */
    void check(Connection connection, String label) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(FIND_ISOLATION)) {
            row.next();
            database = label;
            role = row.getString(2);
            String level = row.getString(1);
            if (!level.equals(READ_COMMITTED)) {
                beginTransactions(level);
            }
        }
    }

    /** Records that a function has rejected the isolation level: the default was changed while the process runs. */
    void rejected(SQLException rejection) {
        beginTransactions(SqlErrors.message(rejection));
    }

    private void beginTransactions(String found) {
        boolean isNew;
        synchronized (this) {
            isNew = readCommittedByDefault;
            readCommittedByDefault = false;
        }
        if (isNew) {
            LOG.warn(
                    "Role {} has another default isolation level on {} than READ COMMITTED, which the library needs ({})."
                            + " Each statement there, also each append, now takes three round trips instead of one: BEGIN,"
                            + " the statement, COMMIT. To avoid that, run ALTER ROLE {} SET default_transaction_isolation ="
                            + " 'read committed', set no isolation level in the pool or its URL, and restart",
                    role,
                    database,
                    found,
                    role);
        }
    }

    /**
     * Sends the first statements of a transaction, in one round trip. They set it to READ COMMITTED and leave nothing on
     * the session: behind a pooler, other clients use that next. A process that freezes in its transaction must not keep
     * its locks, so the server ends it after the given idle time.
     *
     * @param limits further settings of the transaction; may be empty
     * @throws NotSentException if the connection is broken: nothing of the transaction's work was sent
     */
    static void begin(Connection connection, int idleTimeoutMs, String limits) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                    + " SET LOCAL idle_in_transaction_session_timeout = " + idleTimeoutMs + ";" + limits);
        } catch (SQLException e) {
            throw SqlErrors.classify(e) == ErrorKind.IN_DOUBT ? new NotSentException(e) : e;
        }
    }
}
