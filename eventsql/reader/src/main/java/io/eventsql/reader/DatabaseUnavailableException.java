package io.eventsql.reader;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if a database does not respond, or has canceled the read: it is down or fails over, the statement timed out, or it
 * is a standby on which the read conflicted with changes to be replayed. Nothing was skipped; repeat the call later.
 */
public final class DatabaseUnavailableException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
