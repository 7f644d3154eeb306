package io.eventsql;

import org.jspecify.annotations.Nullable;

/** Thrown if an event was not stored and never will be. Publishing it again cannot duplicate it. */
public final class EventNotStoredException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public EventNotStoredException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
