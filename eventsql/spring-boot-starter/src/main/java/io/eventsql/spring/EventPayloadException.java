package io.eventsql.spring;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;

/**
 * Thrown if an argument of a listener method cannot be resolved from an event: its payload cannot be deserialized, or a
 * header is missing. It is not retried; the listener's failure policy applies at once.
 */
public class EventPayloadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final EventPosition position;

    public EventPayloadException(StoredEvent event, String message, Throwable cause) {
        super("The event cannot be passed to its listener: " + message, cause);
        this.position = event.position();
    }

    /** Returns the event's position. */
    public EventPosition position() {
        return position;
    }
}
