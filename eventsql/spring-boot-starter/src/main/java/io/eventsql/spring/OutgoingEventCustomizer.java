package io.eventsql.spring;

import io.eventsql.Event;

/**
 * Customizes each event that {@link EventSqlTemplate} publishes, after its serialization, for example by adding headers.
 * All beans of this type are called, in their order. Thread-safe.
 */
@FunctionalInterface
public interface OutgoingEventCustomizer {

    /**
     * Returns the event to publish, preferably by {@link Event#withHeader} or {@link Event#withHeaders}: these keep a tombstone,
     * and publishing fails if it gets a value.
     *
     * @param payload the payload of {@code event} before its serialization; {@link Tombstone#INSTANCE} for a tombstone
     */
    Event customize(String stream, Object payload, Event event);
}
