package io.eventsql.spring.cloudevents;

import io.eventsql.Event;
import io.eventsql.spring.OutgoingEventCustomizer;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * Makes CloudEvents of all events: adds id, source, type and time as headers, where they are not set. Needs no library.
 * Thread-safe.
 */
public final class CloudEventHeaders implements OutgoingEventCustomizer {
    /** Of the headers that are attributes, as Kafka's binding has it. */
    public static final String PREFIX = "ce_";

    /** The header that every CloudEvent has. */
    static final String SPEC_VERSION = PREFIX + "specversion";

    private final String source;
    private final String typePrefix;
    private final Map<String, String> types;
    private final InstantSource clock;

    /**
     * @param source becomes {@code ce_source}: a URI reference
     * @param typePrefix put before the simple name of the payload's class to make {@code ce_type}
     * @param types {@code ce_type} by the full name of the payload's class
     */
    public CloudEventHeaders(String source, String typePrefix, Map<String, String> types, InstantSource clock) {
        this.source = source;
        this.typePrefix = typePrefix;
        this.types = Map.copyOf(types);
        this.clock = clock;
    }

    @Override
    public Event customize(String stream, Object payload, Event event) {
        if (event.headers().containsKey(SPEC_VERSION)) {
            return event;
        }
        Map<String, String> headers = new LinkedHashMap<>(event.headers());
        headers.put(SPEC_VERSION, "1.0");
        headers.putIfAbsent(PREFIX + "id", UUID.randomUUID().toString());
        headers.putIfAbsent(PREFIX + "source", source);
        headers.putIfAbsent(PREFIX + "type", type(payload.getClass()));
        headers.putIfAbsent(PREFIX + "time", clock.instant().toString());
        return new Event(event.key(), event.value(), headers);
    }

    private String type(Class<?> payload) {
        String type = types.get(payload.getName());
        return type == null ? typePrefix + payload.getSimpleName() : type;
    }
}
