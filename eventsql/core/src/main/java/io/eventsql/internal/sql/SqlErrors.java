package io.eventsql.internal.sql;

import io.eventsql.internal.thread.ForeignErrors;
import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.PSQLWarning;
import org.postgresql.util.ServerErrorMessage;

/**
 * Classifies the errors and warnings of the database by their SQLSTATE. Their severity is never read: the driver offers only
 * the translated text, and a connection pooler sends an ERROR of its own while a commit is in progress.
 */
public final class SqlErrors {
    // The codes that the library's own functions raise.
    public static final String MAP_VERSION = "ES001";
    public static final String STALE_BATCH = "ES002";
    public static final String NOT_READ_COMMITTED = "ES003";
    public static final String NO_PARTITION = "ES004";
    public static final String PARTIAL_BATCH = "ES005";
    public static final String HANDLER_ENDED_TRANSACTION = "ES006";
    public static final String PARTITION_TAKEN = "ES007";
    public static final String NOT_PARKED = "ES008";
    public static final String NOT_NEXT = "ES009";
    public static final String RELAY_LOST = "ES010";
    public static final String OTHER_INCARNATION = "ES011";
    public static final String OTHER_STREAM = "ES012";
    public static final String TIME_LIMIT = "ES013";
    public static final String NO_COMPACTION = "ES016";
    public static final String NO_KEY_INDEX = "ES017";
    public static final String NO_ERASURE = "ES018";
    public static final String STREAM_BEING_DELETED = "ES019";
    public static final String STREAM_IN_USE = "ES020";
    public static final String OTHER_STORAGE = "ES021";
    public static final String KEY_RESERVED = "ES022";
    public static final String NO_KEY_TRACKING = "ES023";
    public static final String PARTITION_IN_USE = "ES025";
    public static final String NOT_PREPARED = "ES027";
    public static final String NOT_MOVABLE = "ES028";
    public static final String SHARD_REMOVED = "ES029";
    public static final String MAY_BE_MOVED = "ES030";
    public static final String LEFT_OUT = "ES031";
    private static final String CHECK_VIOLATION = "23514";
    /** The constraint of a segment that is about to end early; adding segments removes it. */
    private static final String SEGMENT_END = "eventsql_end";
    /** The beginning of the names of all tables of streams. */
    private static final String STREAM_TABLES = "events_";

    private static final String SEGMENT = "segment";

    public static final String UNDEFINED_TABLE = "42P01";
    /** For a partition that was dropped, or detached by another session, while it was being detached. */
    public static final String OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";

    private static final String UNDEFINED_FUNCTION = "42883";
    private static final String INTERNAL_ERROR = "XX000";
    static final String SERIALIZATION_FAILURE = "40001";
    public static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final String DEADLOCK = "40P01";
    public static final String QUERY_CANCELED = "57014";
    public static final String READ_ONLY = "25006";
    private static final String TRANSACTION_TIMEOUT = "25P04";
    private static final int CLASS_LENGTH = 2;
    private static final int SENTENCES_MAX = 3;

    private SqlErrors() {}

    /** Returns the error of a call that was routed to the partitions of a former stream of the same name. */
    public static SQLException createdAnew() {
        return new SQLException("the stream was created anew with other partitions", NO_PARTITION);
    }

    /** Returns the SQLSTATE, or an empty string if there is none. */
    public static String state(SQLException e) {
        @Nullable String state = e.getSQLState();
        return state == null ? "" : state;
    }

    /**
     * Returns what an error says about the statement, or the transaction, that failed.
     *
     * <p>An error that does not come from the server leaves the outcome open once the statement was sent: a connection
     * that broke, a network timeout, a result that could not be read. So do the server's errors about connections (class
     * 08), shutdowns (57P01 to 57P05), its operating system (58) and corrupted data (XX001, XX002), because they may arise
     * after the commit. With every other error the server has rolled back.
     *
     * <p>That a shard lacks a stream says nothing about its connection, although the reason may be that of another shard.
     */
    public static ErrorKind classify(SQLException e) {
        if (isStreamPending(e)) {
            return ErrorKind.ENVIRONMENT;
        }
        if (anyCause(e, NotSentException.class::isInstance)) {
            return ErrorKind.NOT_SENT;
        }
        if (anyCause(e, cause -> cause instanceof PSQLException ofDriver && ofDriver.getServerErrorMessage() == null)) {
            return ErrorKind.IN_DOUBT;
        }
        if (isMissingSegment(e)) {
            return ErrorKind.PROTOCOL;
        }
        String state = state(e);
        return switch (errorClass(e)) {
            case "", "01", "08", "58" -> ErrorKind.IN_DOUBT;
            case "40" -> state.equals("40003") ? ErrorKind.IN_DOUBT : ErrorKind.ENVIRONMENT; // completion unknown
            case "53" -> ErrorKind.ENVIRONMENT;
            case "ES", "42", "3F", "3D" -> ErrorKind.PROTOCOL;
            default ->
                switch (state) {
                    case "57P01", "57P02", "57P03", "57P04", "57P05", "XX001", "XX002" -> ErrorKind.IN_DOUBT;
                    // 25P03, 25P04: the server terminated a transaction that was idle, or open, for too long
                    case LOCK_NOT_AVAILABLE, QUERY_CANCELED, READ_ONLY, "25P03", TRANSACTION_TIMEOUT ->
                        ErrorKind.ENVIRONMENT;
                    default -> ErrorKind.CONTENT;
                };
        };
    }

    /**
     * Returns whether the error can only have been raised by writing the rows of the events: a data error (22), a
     * constraint (23), an exception of a trigger (P0, 45), or a limit that a row exceeds (54). Rows are written after the batch's
     * number was compared, so no attempt under that number was stored, and one that arrives late fails, too.
     */
    public static boolean isRaisedByRows(SQLException e) {
        return switch (errorClass(e)) {
            case "22", "23", "P0", "45", "54" -> classify(e) == ErrorKind.CONTENT;
            default -> false;
        };
    }

    /**
     * Returns whether a row has no segment ("no partition of relation found for row"), or the end of its segment was
     * announced by a constraint. The violation of any other CHECK constraint has the same SQLSTATE, but names its
     * constraint; so may an exception of a trigger, which names no table, and a partitioned table of the application, to
     * which a trigger writes.
     */
    public static boolean isMissingSegment(SQLException e) {
        if (!state(e).equals(CHECK_VIOLATION)) {
            return false;
        }
        return anyCause(e, cause -> {
            ServerErrorMessage message =
                    cause instanceof PSQLException fromServer ? fromServer.getServerErrorMessage() : null;
            return message != null
                    && message.getTable() != null
                    && (message.getConstraint() == null
                            ? isOfStream(message)
                            : message.getConstraint().equals(SEGMENT_END));
        });
    }

    /** Returns whether an error is that of a stream's table, or was raised by segment_end_v1 for blocks, without a schema. */
    private static boolean isOfStream(ServerErrorMessage message) {
        String table = String.valueOf(message.getTable());
        return table.startsWith(STREAM_TABLES) || (message.getSchema() == null && table.equals(SEGMENT));
    }

    /**
     * Returns whether a function may not exist, or the role may not execute it; nothing was stored. One that is dropped
     * between planning and execution is an internal error of the server.
     */
    static boolean isUnusableFunction(SQLException e) {
        return switch (state(e)) {
            case UNDEFINED_FUNCTION, INTERNAL_ERROR -> true;
            default -> MissingPrivilegeException.isMissingPrivilege(e);
        };
    }

    /** Returns whether an append must wait for a transaction that publishes for one of its keys, or for the outbox. */
    public static boolean isKeyReserved(SQLException e) {
        return state(e).equals(KEY_RESERVED);
    }

    /** Returns whether a stream has another map on the shard than the append was routed by: it is not stored. */
    public static boolean isOtherMap(SQLException e) {
        return state(e).equals(MAP_VERSION);
    }

    /** Returns whether a transaction was rolled back because others hold the locks that it needs. */
    public static boolean isLockConflict(SQLException e) {
        return state(e).equals(LOCK_NOT_AVAILABLE) || state(e).equals(DEADLOCK);
    }

    /**
     * Checks the warnings of a statement that was committed, or of a commit.
     *
     * <p>The server commits although a wait for its synchronous replicas was canceled, and returns a warning of class 01 or
     * 57. A warning of a user's trigger has the same SQLSTATE, but was raised inside a function, which its context states.
     * Messages of other classes (NOTICE, INFO, LOG) mean nothing.
     *
     * @throws AppendStatement.WarnedException if the transaction is in doubt
     */
    public static void requireNoDoubt(@Nullable SQLWarning first) throws AppendStatement.WarnedException {
        for (SQLWarning warning = first; warning != null; warning = warning.getNextWarning()) {
            if (isDoubt(warning)) {
                throw new AppendStatement.WarnedException(warning);
            }
        }
    }

    private static boolean isDoubt(SQLWarning warning) {
        ServerErrorMessage message =
                warning instanceof PSQLWarning fromServer ? fromServer.getServerErrorMessage() : null;
        boolean raisedInFunction = message != null && message.getWhere() != null;
        return switch (errorClass(warning)) {
            case "", "01", "57" -> !raisedInFunction;
            default -> false;
        };
    }

    /** Returns whether a standby has canceled a read, because it conflicts with changes that it replays. */
    public static boolean isRecoveryConflict(SQLException e) {
        return state(e).equals(SERIALIZATION_FAILURE) || state(e).equals(DEADLOCK);
    }

    /** Returns whether the database has another incarnation than the caller knows: nothing was stored. */
    public static boolean isOtherIncarnation(Throwable e) {
        return anyCause(
                e, cause -> cause instanceof SQLException sql && state(sql).equals(OTHER_INCARNATION));
    }

    /** Returns whether a shard lacks a stream that it cannot get yet: nothing was sent. */
    public static boolean isStreamPending(SQLException e) {
        return anyCause(e, StreamPendingException.class::isInstance);
    }

    /** Returns whether an append waits for a transaction, for the outbox or for a move of keys: it is not stored. */
    public static boolean waitsForOthers(SQLException e) {
        return isKeyReserved(e) || isOtherMap(e);
    }

    /** Returns whether a lock was not available in time: another transaction is the cause. */
    public static boolean isLockTimeout(SQLException e) {
        return state(e).equals(LOCK_NOT_AVAILABLE);
    }

    /** Returns whether the server terminated a transaction that was open for too long, and the connection with it. */
    public static boolean isTransactionTimeout(Throwable e) {
        return anyCause(
                e, cause -> cause instanceof SQLException sql && state(sql).equals(TRANSACTION_TIMEOUT));
    }

    /** Returns whether the network timeout elapsed. */
    public static boolean isTimeout(Throwable e) {
        return anyCause(e, SocketTimeoutException.class::isInstance);
    }

    /**
     * Returns whether the connection broke or the server terminated it (57P01 to 57P05), however a framework wraps
     * that. A server's error always has a SQLSTATE; that of a pool that rejects the use of a broken connection has
     * none.
     */
    public static boolean isConnectionLost(Throwable e) {
        return anyCause(
                e,
                cause -> cause instanceof SQLException sql
                        && (state(sql).isEmpty()
                                || errorClass(sql).equals("08")
                                || state(sql).startsWith("57P")));
    }

    private static boolean anyCause(Throwable e, Predicate<Throwable> test) {
        return ForeignErrors.withCauses(e).stream().anyMatch(test);
    }

    /**
     * Returns the database's sentence: the first line of the message, without the details, which may contain the content
     * of a row. What the causes add follows: a pool that has no connection rarely says why.
     */
    public static String message(Throwable e) {
        String message = firstLine(e);
        int sentences = 1;
        for (Throwable cause : ForeignErrors.withCauses(e)) {
            String more = firstLine(cause);
            if (sentences < SENTENCES_MAX && !message.contains(more)) {
                message += ": " + more;
                sentences++;
            }
        }
        return message;
    }

    private static String firstLine(Throwable e) {
        String message = e.getMessage() == null ? e.toString() : String.valueOf(e.getMessage());
        return firstLine(message) + lockedObject(e);
    }

    private static String firstLine(String text) {
        int end = text.indexOf('\n');
        return end < 0 ? text : text.substring(0, end);
    }

    /** Returns what a lock was awaited for, as far as the server names it. */
    private static String lockedObject(Throwable e) {
        if (e instanceof PSQLException fromServer && isLockTimeout(fromServer)) {
            ServerErrorMessage message = fromServer.getServerErrorMessage();
            String where = message == null ? null : message.getWhere();
            if (where != null && where.startsWith("while ")) { // locking tuple (0,1) in relation "stream_partition"
                return " " + firstLine(where);
            }
        }
        return "";
    }

    private static String errorClass(SQLException e) {
        String state = state(e);
        return state.length() < CLASS_LENGTH ? "" : state.substring(0, CLASS_LENGTH);
    }
}
