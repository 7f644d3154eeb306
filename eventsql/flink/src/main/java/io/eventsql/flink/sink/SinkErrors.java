package io.eventsql.flink.sink;

import java.sql.SQLException;
import java.sql.SQLWarning;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.PSQLWarning;
import org.postgresql.util.ServerErrorMessage;

/** Classifies the errors of an append by their SQLSTATE. A batch keeps its number, so it may be repeated after any error. */
final class SinkErrors {
    static final String MAP_VERSION = "ES001";
    private static final String NO_PARTITION = "ES004";
    private static final String OTHER_INCARNATION = "ES011";
    private static final String OTHER_STREAM = "ES012";
    private static final String TIME_LIMIT = "ES013";
    private static final String KEY_RESERVED = "ES022";
    private static final String READ_ONLY = "25006";
    private static final String CHECK_VIOLATION = "23514";
    /** The constraint of a segment that is about to end early; adding segments removes it. */
    private static final String SEGMENT_END = "eventsql_end";

    private static final int CLASS_LENGTH = 2;

    private SinkErrors() {}

    static String state(SQLException e) {
        String state = e.getSQLState();
        return state == null ? "" : state;
    }

    /** Returns the first line of the message, without the details, which may contain the content of a row. */
    static String message(SQLException e) {
        String message = String.valueOf(e.getMessage()).strip();
        int end = message.indexOf('\n');
        return end < 0 ? message : message.substring(0, end);
    }

    /** Returns whether what is remembered of the database is out of date. */
    static boolean isStale(SQLException e) {
        return switch (state(e)) {
            case NO_PARTITION, OTHER_INCARNATION, OTHER_STREAM -> true;
            default -> false;
        };
    }

    /** Returns whether the connection leads to a server that accepts no writes, such as a former primary. */
    static boolean isReadOnly(SQLException e) {
        return state(e).equals(READ_ONLY);
    }

    /** Returns whether the partition needs a further segment. */
    static boolean isMissingSegment(SQLException e) {
        ServerErrorMessage message = e instanceof PSQLException fromServer ? fromServer.getServerErrorMessage() : null;
        return state(e).equals(CHECK_VIOLATION)
                && message != null
                && message.getTable() != null
                && (message.getConstraint() == null
                        ? isOfStream(message)
                        : message.getConstraint().equals(SEGMENT_END));
    }

    /** Returns whether it is an error of a stream's table, or was raised by the library for blocks, without a schema. */
    private static boolean isOfStream(ServerErrorMessage message) {
        String table = String.valueOf(message.getTable());
        return table.startsWith("events_") || (message.getSchema() == null && table.equals("segment"));
    }

    /**
     * Returns whether the error passes: lost connections (08, 57P, or no SQLSTATE), too few resources (53), errors of the
     * operating system (58), conflicts (40, 55P03), timeouts (57014, 25P03, 25P04, ES013), a former primary (25006), a key that a
     * transaction publishes for (ES022), a commit that may not have reached the synchronous replicas (01).
     */
    static boolean isTransient(SQLException e) {
        String state = state(e);
        return switch (errorClass(state)) {
            case "", "01", "08", "40", "53", "57", "58" -> true;
            default ->
                switch (state) {
                    case "55P03", READ_ONLY, "25P03", "25P04", "XX001", "XX002", TIME_LIMIT, KEY_RESERVED -> true;
                    default -> false;
                };
        };
    }

    /**
     * Checks the warnings of a commit: the server commits although a wait for its synchronous replicas was canceled, and returns a
     * warning of class 01 or 57. One of a trigger was raised in a function, which its context states.
     *
     * @throws SQLException if the commit is in doubt
     */
    static void requireNoDoubt(@Nullable SQLWarning first) throws SQLException {
        for (SQLWarning warning = first; warning != null; warning = warning.getNextWarning()) {
            ServerErrorMessage message =
                    warning instanceof PSQLWarning fromServer ? fromServer.getServerErrorMessage() : null;
            boolean isRaisedInFunction = message != null && message.getWhere() != null;
            String warningClass = errorClass(state(warning));
            if (!isRaisedInFunction && (warningClass.equals("01") || warningClass.equals("57"))) {
                throw new SQLException("The database returned a warning: " + warning.getMessage(), "01000", warning);
            }
        }
    }

    private static String errorClass(String state) {
        return state.length() < CLASS_LENGTH ? "" : state.substring(0, CLASS_LENGTH);
    }
}
