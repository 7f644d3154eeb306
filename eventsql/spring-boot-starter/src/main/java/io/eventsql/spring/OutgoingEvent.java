package io.eventsql.spring;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An event to publish whose payload is an object still. Immutable, if the payload is.
 *
 * @param key events of one key keep their order; {@code null}: any partition
 * @param payload what {@link EventSerializer} makes the event's value of; text and bytes are taken as they are
 * @param headers small texts beside the payload; the serializer may add some, and never replaces one
 */
public record OutgoingEvent(@Nullable String key, Object payload, Map<String, String> headers) {

    public OutgoingEvent {
        Objects.requireNonNull(payload, "payload");
        Objects.requireNonNull(headers, "headers");
        headers = headers.isEmpty() ? Map.of() : Map.copyOf(headers);
    }

    /** An event without a key and without headers. */
    public static OutgoingEvent of(Object payload) {
        return new OutgoingEvent(null, payload, Map.of());
    }

    /** An event without headers. */
    public static OutgoingEvent of(@Nullable String key, Object payload) {
        return new OutgoingEvent(key, payload, Map.of());
    }

    /** The same event with another key. */
    public OutgoingEvent withKey(@Nullable String newKey) {
        return new OutgoingEvent(newKey, payload, headers);
    }

    /** The same event with one more header; a header of that name is replaced. */
    public OutgoingEvent withHeader(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return new OutgoingEvent(key, payload, more);
    }

    /** The same event with these headers more; those of the same names are replaced. */
    public OutgoingEvent withHeaders(Map<String, String> values) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.putAll(values);
        return new OutgoingEvent(key, payload, more);
    }
}
