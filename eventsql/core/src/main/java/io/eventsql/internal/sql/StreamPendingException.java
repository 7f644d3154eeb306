package io.eventsql.internal.sql;

import java.sql.SQLException;

/**
 * Thrown if a shard responds, but lacks a stream and cannot get it yet, such as while only an unavailable shard may have it. Nothing
 * was written.
 */
public final class StreamPendingException extends SQLException {
    private static final long serialVersionUID = 1L;

    public StreamPendingException(String message) {
        super(message, SqlErrors.OBJECT_NOT_IN_PREREQUISITE_STATE);
    }

    /** @param cause its message becomes that of this exception */
    public StreamPendingException(Exception cause) {
        super(cause.getMessage(), SqlErrors.OBJECT_NOT_IN_PREREQUISITE_STATE, cause);
    }
}
