package io.eventsql.spring;

import tools.jackson.databind.JsonNode;

/**
 * Converts the payload of stored events from one version of their type to the next. {@link JacksonEventSerializer} applies
 * one after the other until the payload has the {@link EventType#version()} of the class, each time the event is read; the
 * stored event does not change. Beans of this interface are used by Spring Boot's serializer. Thread-safe.
 */
public interface EventUpcaster {
    /** Returns the class of the payload in its current version. */
    Class<?> type();

    /** Returns the version that {@link #upcast} converts to the next one, 1 or more. */
    int fromVersion();

    /**
     * Returns the payload in version {@link #fromVersion()} + 1.
     *
     * @param payload in version {@link #fromVersion()}; may be modified and returned
     * @throws RuntimeException if it cannot be converted; the event is not retried, its failure policy applies
     */
    JsonNode upcast(JsonNode payload);
}
