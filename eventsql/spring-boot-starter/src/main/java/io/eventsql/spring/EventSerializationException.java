package io.eventsql.spring;

import org.jspecify.annotations.Nullable;

/** A payload cannot become an event, or an event not the payload that is asked for. Trying again does not help. */
public class EventSerializationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public EventSerializationException(String message) {
        super(message);
    }

    public EventSerializationException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
