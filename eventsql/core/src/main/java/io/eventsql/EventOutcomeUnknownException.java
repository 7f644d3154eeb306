package io.eventsql;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if the outcome of an append is in doubt: the event was sent, but the database did not confirm the commit before
 * the deadline. The event may be stored or not; publishing it again may store it twice.
 */
public final class EventOutcomeUnknownException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public EventOutcomeUnknownException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
