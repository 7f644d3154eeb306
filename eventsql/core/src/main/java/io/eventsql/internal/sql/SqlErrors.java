package io.eventsql.internal.sql;

import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** Classifies the errors of the database: the outcome of the statement, and whether a retry can help. */
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
    private static final String CHECK_VIOLATION = "23514";
    public static final String UNDEFINED_TABLE = "42P01";
    public static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final int CLASS_LENGTH = 2;

    private SqlErrors() {}

    /** Returns the SQLSTATE, or an empty string if there is none. */
    public static String state(SQLException e) {
        @Nullable String state = e.getSQLState();
        return state == null ? "" : state;
    }

    /**
     * Returns whether a row has no segment ("no partition of relation found for row"). The violation of a CHECK
     * constraint has the same SQLSTATE, but names its constraint; so may an exception of a trigger, which names no
     * table.
     */
    public static boolean isMissingSegment(SQLException e) {
        if (!state(e).equals(CHECK_VIOLATION) || !(e instanceof PSQLException fromServer)) {
            return false;
        }
        ServerErrorMessage message = fromServer.getServerErrorMessage();
        return message != null && message.getConstraint() == null && message.getTable() != null;
    }

    /** Returns whether this is a data error (class 22 or 23): it was rolled back, and the same input fails again. */
    public static boolean isDataError(SQLException e) {
        String errorClass = errorClass(e);
        return errorClass.equals("22") || errorClass.equals("23");
    }

    /**
     * Returns whether the database rejected the content: a data error, or an exception of a user's trigger (class P0).
     */
    public static boolean isRefusedContent(SQLException e) {
        return isDataError(e) || errorClass(e).equals("P0");
    }

    /**
     * Returns whether the server rejected the statement for a permanent reason: a missing table, column, function or
     * permission, or an unsupported feature.
     */
    public static boolean isRefused(SQLException e) {
        return switch (errorClass(e)) {
            case "42", "0A", "3F", "3D", "ES" -> true;
            default -> false;
        };
    }

    /**
     * Returns whether the server reported that it rolled the statement back, for a transient reason: deadlock or
     * serialization failure (40), resources such as a full disk (53), lock not available (55), a read-only transaction
     * (25), a cancelled statement (57014). Any other error, connection errors above all, leaves open whether it was
     * committed.
     */
    public static boolean isRolledBack(SQLException e) {
        return switch (errorClass(e)) {
            case "40" -> !state(e).equals("40003"); // statement_completion_unknown
            case "53", "54", "55", "25" -> true;
            default -> state(e).equals("57014");
        };
    }

    /** Returns whether the database has another incarnation than the caller knows: nothing was stored. */
    public static boolean isOtherIncarnation(Throwable e) {
        return anyCause(
                e, cause -> cause instanceof SQLException sql && state(sql).equals(OTHER_INCARNATION));
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
        for (Throwable cause = e; cause != null; cause = cause.getCause()) {
            if (test.test(cause)) {
                return true;
            }
        }
        return false;
    }

    /** Returns the first line of the message, without the details, which may contain the content of a row. */
    public static String message(SQLException e) {
        String message = String.valueOf(e.getMessage());
        int end = message.indexOf('\n');
        return end < 0 ? message : message.substring(0, end);
    }

    private static String errorClass(SQLException e) {
        String state = state(e);
        return state.length() < CLASS_LENGTH ? "" : state.substring(0, CLASS_LENGTH);
    }
}
