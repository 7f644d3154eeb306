package io.eventsql;

import org.jspecify.annotations.Nullable;

/**
 * The event was sent, but until the deadline the database did not say whether it was committed: it may be stored or
 * not. Publishing it again may store it twice.
 */
public final class EventOutcomeUnknownException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public EventOutcomeUnknownException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
