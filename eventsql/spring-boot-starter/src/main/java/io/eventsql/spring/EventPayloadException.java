package io.eventsql.spring;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;

/**
 * What a listener method takes could not be made of an event: its payload does not have the form, or a header is
 * missing. Never tried again; the listener's failure policy applies at once.
 */
public class EventPayloadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final EventPosition position;

    public EventPayloadException(StoredEvent event, String message, Throwable cause) {
        super("the event does not fit: " + message, cause);
        this.position = event.position();
    }

    /** Where the event is. */
    public EventPosition position() {
        return position;
    }
}
