package io.eventsql;

import org.jspecify.annotations.Nullable;

/** The event is not stored and never will be: publishing it again cannot duplicate it. */
public final class EventNotStoredException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public EventNotStoredException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
