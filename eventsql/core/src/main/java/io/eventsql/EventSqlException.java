package io.eventsql;

import org.jspecify.annotations.Nullable;

/** The base of everything the library reports, except wrong input ({@link InvalidInputException}). */
public class EventSqlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public EventSqlException(String message) {
        super(message);
    }

    public EventSqlException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
