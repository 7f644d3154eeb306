package io.eventsql;

import org.jspecify.annotations.Nullable;

/** Base class of the library's exceptions, except for invalid input ({@link InvalidInputException}). */
public class EventSqlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public EventSqlException(String message) {
        super(message);
    }

    public EventSqlException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
