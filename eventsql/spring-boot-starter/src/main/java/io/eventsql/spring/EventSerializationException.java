package io.eventsql.spring;

import org.jspecify.annotations.Nullable;

/** Thrown if a payload cannot be serialized, or an event not deserialized as the requested type. A retry does not help. */
public class EventSerializationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public EventSerializationException(String message) {
        super(message);
    }

    public EventSerializationException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
