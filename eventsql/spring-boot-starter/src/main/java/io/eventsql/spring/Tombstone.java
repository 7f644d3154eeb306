package io.eventsql.spring;

import io.eventsql.Event;

/**
 * The payload of an event without a value, which says that its key is deleted ({@link Event#tombstone}). {@link
 * OutgoingEvent#tombstone} publishes one; a listener method with a parameter of this type receives them.
 */
public enum Tombstone {
    /** The only payload of this type. */
    INSTANCE
}
