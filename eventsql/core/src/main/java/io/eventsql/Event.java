package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An event to publish. Immutable, except that {@link #value()} is not copied: do not change the array afterwards.
 *
 * <p>Sizes are limited by {@link Settings#maxEventBytes()}, {@link Settings#maxKeyBytes()} and {@link
 * Settings#maxHeadersBytes()}; they are checked when the event is published.
 *
 * @param key events of one key keep their order and always go to the same partition of the same shard; {@code null}:
 *     any partition. No NUL character, not empty.
 * @param value the payload; opaque to the library, JSON as UTF-8 if the table is to be read with SQL's JSON operators
 * @param headers small texts beside the payload, readable with JSON operators in SQL; names not empty, no NUL character
 */
public record Event(@Nullable String key, byte[] value, Map<String, String> headers) {

    /** Copies the headers; validates nothing but {@code null}s, limits are checked by the publisher. */
    public Event {
        Objects.requireNonNull(value, "value");
        Objects.requireNonNull(headers, "headers");
        headers = headers.isEmpty() ? Map.of() : Map.copyOf(headers);
    }

    /** An event without a key and without headers. */
    public static Event of(byte[] value) {
        return new Event(null, value, Map.of());
    }

    /** An event without headers. */
    public static Event of(String key, byte[] value) {
        return new Event(Objects.requireNonNull(key, "key"), value, Map.of());
    }

    /** An event without a key whose value is the text's UTF-8 form. */
    public static Event ofText(String text) {
        return of(text.getBytes(StandardCharsets.UTF_8));
    }

    /** An event whose value is the text's UTF-8 form. */
    public static Event ofText(String key, String text) {
        return of(key, text.getBytes(StandardCharsets.UTF_8));
    }

    /** The same event with one more header; a header of that name is replaced. */
    public Event withHeader(String name, String headerValue) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, headerValue);
        return new Event(key, value, more);
    }

    /** The value read as UTF-8. */
    public String text() {
        return new String(value, StandardCharsets.UTF_8);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Event that
                && Objects.equals(key, that.key)
                && Arrays.equals(value, that.value)
                && headers.equals(that.headers);
    }

    @Override
    public int hashCode() {
        return Objects.hash(key, Arrays.hashCode(value), headers);
    }

    @Override
    public String toString() {
        return "Event[key=" + key + ", value=" + value.length + " bytes, headers=" + headers + "]";
    }
}
