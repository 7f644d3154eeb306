package io.eventsql.spring;

import io.eventsql.Event;

/**
 * Changes each event that {@link EventSqlTemplate} publishes, behind the serializer: adds headers, say. All beans of this
 * type are asked, in their order. Thread-safe.
 */
@FunctionalInterface
public interface OutgoingEventCustomizer {

    /**
     * The event to publish.
     *
     * @param payload what {@code event} was made of
     */
    Event customize(String stream, Object payload, Event event);
}
