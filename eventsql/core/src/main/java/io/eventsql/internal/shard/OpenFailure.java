package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.internal.thread.ForeignErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Why a database could not be opened.
 *
 * @param label names the database, such as {@code database 1 of 2}
 * @param failure thrown by the data source, or by a statement
 */
record OpenFailure(String label, Exception failure) {
    private static final String CONNECTION_CLASS = "08";

    /** Returns what failed, and what to do about it. */
    String text() {
        if (failure instanceof EventSqlException) { // says that itself
            return label + ": " + failure.getMessage();
        }
        @Nullable SQLException error = findError(failure);
        String state = error == null || error.getSQLState() == null ? "" : error.getSQLState();
        String message = String.valueOf((error == null ? failure : error).getMessage());
        return switch (state) {
            case "28000", "28P01" ->
                label + ": the server rejected the login (" + message
                        + "). Check the user name, the password and the server's pg_hba.conf";
            case "3D000" ->
                label + ": the database does not exist (" + message
                        + "). Check the database name in the JDBC URL, or create" + " the database";
            case "42501" ->
                label + ": the role lacks a right (" + message
                        + "). Grant it to the role, or migrate the schema with the"
                        + " owner's role; the documentation lists the rights that each role needs";
            case "42P01", "42883", "3F000" ->
                label + ": the schema is incomplete (" + message + "). Apply the library's SQL files, or check"
                        + " settings.schema";
            case "53300" -> label + ": the server has no free connection (" + message + ")";
            default -> label + " is unavailable: " + message;
        };
    }

    /** Returns the innermost error of the database: pools wrap it in errors of their own. */
    private static @Nullable SQLException findError(Throwable thrown) {
        @Nullable SQLException found = null;
        for (Throwable cause : ForeignErrors.withCauses(thrown)) {
            if (cause instanceof SQLException sql && (found == null || hasOwnState(sql) || !hasOwnState(found))) {
                found = sql;
            }
        }
        return found;
    }

    private static boolean hasOwnState(SQLException e) {
        return e.getSQLState() != null && !e.getSQLState().startsWith(CONNECTION_CLASS);
    }

    /** Returns an exception that names the causes of all failures. */
    static EventSqlException toException(String what, List<OpenFailure> failures) {
        String causes = failures.stream().map(OpenFailure::text).collect(Collectors.joining("; "));
        return new EventSqlException(what + ": " + causes, failures.getFirst().failure());
    }
}
