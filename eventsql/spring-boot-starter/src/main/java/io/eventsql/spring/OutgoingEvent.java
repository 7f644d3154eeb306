package io.eventsql.spring;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An event to publish, before its serialization. Immutable if the payload is.
 *
 * @param key events with the same key keep their order; {@code null}: any partition
 * @param payload serialized by {@link EventSerializer} to the event's value; by default {@code String} and {@code byte[]}
 *     are not changed. {@link Tombstone#INSTANCE}: the event has no value, and must have a key
 * @param headers metadata next to the payload; the serializer may add headers, and never replaces one
 */
public record OutgoingEvent(@Nullable String key, Object payload, Map<String, String> headers) {

    public OutgoingEvent {
        Objects.requireNonNull(payload, "payload");
        Objects.requireNonNull(headers, "headers");
        headers = headers.isEmpty() ? Map.of() : Map.copyOf(headers);
    }

    /** Returns an event without a key and headers. */
    public static OutgoingEvent of(Object payload) {
        return new OutgoingEvent(null, payload, Map.of());
    }

    /** Returns an event without headers. */
    public static OutgoingEvent of(@Nullable String key, Object payload) {
        return new OutgoingEvent(key, payload, Map.of());
    }

    /**
     * Returns an event without a value, which says that the key is deleted ({@link io.eventsql.Event#tombstone}). It is not
     * serialized.
     */
    public static OutgoingEvent tombstone(String key) {
        return new OutgoingEvent(Objects.requireNonNull(key, "key"), Tombstone.INSTANCE, Map.of());
    }

    /** Returns the event with another key. */
    public OutgoingEvent withKey(@Nullable String newKey) {
        return new OutgoingEvent(newKey, payload, headers);
    }

    /** Returns the event with one more header; replaces a header of that name. */
    public OutgoingEvent withHeader(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return new OutgoingEvent(key, payload, more);
    }

    /** Returns the event with more headers; replaces those with the same names. */
    public OutgoingEvent withHeaders(Map<String, String> values) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.putAll(values);
        return new OutgoingEvent(key, payload, more);
    }
}
