package io.eventsql.reader;

import io.eventsql.reader.ReaderSql.StreamGoneException;
import java.sql.SQLException;

/** Classifies the errors of the database by their SQLSTATE. */
final class SqlFailures {
    private static final String OTHER_INCARNATION = "ES011";
    private static final String OTHER_STREAM = "ES012";
    private static final String OTHER_STORAGE = "ES021";
    private static final int CLASS_LENGTH = 2;

    private SqlFailures() {}

    /** Returns whether what is remembered of the database is out of date. */
    static boolean isStale(SQLException e) {
        return switch (state(e)) {
            case OTHER_INCARNATION, OTHER_STREAM, OTHER_STORAGE -> true;
            default -> e instanceof StreamGoneException;
        };
    }

    /** Returns whether the connection is of no use any more: it broke, or the server ended it. */
    static boolean isConnectionLost(SQLException e) {
        return state(e).isEmpty() || errorClass(e).equals("08") || state(e).startsWith("57P");
    }

    /** Returns the exception for an error that remains. */
    static EventReaderException explain(String action, SQLException e) {
        String message = action + " failed: " + e.getMessage();
        return isStale(e) || isTransient(e)
                ? new DatabaseUnavailableException(message, e)
                : new EventReaderException(message, e);
    }

    /**
     * Returns whether the error passes: lost connections, too few resources (53), errors of the operating system (58), a
     * conflict with the replay of a standby (40001, 40P01), a lock that was not available (55P03), a statement that timed
     * out (57014).
     */
    private static boolean isTransient(SQLException e) {
        return isConnectionLost(e)
                || switch (errorClass(e)) {
                    case "40", "53", "58" -> true;
                    default -> state(e).equals("55P03") || state(e).equals("57014");
                };
    }

    private static String state(SQLException e) {
        String state = e.getSQLState();
        return state == null || e instanceof StreamGoneException ? "" : state;
    }

    private static String errorClass(SQLException e) {
        String state = state(e);
        return state.length() < CLASS_LENGTH ? "" : state.substring(0, CLASS_LENGTH);
    }
}
