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
    private final EventTypes types;
    private final InstantSource clock;

    /**
     * @param source the attribute {@code ce_source}, a URI reference
     * @param types the attribute {@code ce_type}; see {@link EventTypes#ofCloudEvents}
     */
    public CloudEventHeaders(String source, EventTypes types, InstantSource clock) {
        this.source = source;
        this.types = types;
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
        headers.putIfAbsent(PREFIX + "type", types.cloudEventType(payload.getClass()));
        headers.putIfAbsent(PREFIX + "time", clock.instant().toString());
        return event.withHeaders(headers);
    }
}
