package io.eventsql.internal.sql;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;

/** Thrown if there was no connection: no statement was sent. */
public final class NotSentException extends SQLTransientConnectionException {
    private static final long serialVersionUID = 1L;
    private static final String UNABLE_TO_CONNECT = "08001";

    public NotSentException(String message) {
        super(message, UNABLE_TO_CONNECT);
    }

    /** @param cause its message and its SQLSTATE become those of this exception */
    public NotSentException(Throwable cause) {
        super(
                cause instanceof SQLException ? cause.getMessage() : cause.toString(),
                cause instanceof SQLException e ? e.getSQLState() : UNABLE_TO_CONNECT,
                cause);
    }
}
