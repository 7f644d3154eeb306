package io.eventsql.spring;

import io.eventsql.Event;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * Makes every event a CloudEvent in binary mode: adds id, source, type and time as headers {@code ce_…} unless they are
 * set. Needs no library. Thread-safe.
 */
public final class CloudEventHeaders implements OutgoingEventCustomizer {
    /** Prefix of the headers with attributes, as in the Kafka binding. */
    public static final String PREFIX = "ce_";

    /** The header of every CloudEvent. */
    static final String SPEC_VERSION = PREFIX + "specversion";

    private final String source;
    private final String typePrefix;
    private final Map<String, String> types;
    private final InstantSource clock;

    /**
     * @param source the attribute {@code ce_source}, a URI reference
     * @param typePrefix prefix of {@code ce_type}, followed by the simple name of the payload's class
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
