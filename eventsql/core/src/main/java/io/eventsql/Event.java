package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An event to publish. Immutable, except that {@link #value()} is not copied: the array must not be changed afterwards.
 *
 * <p>Sizes are limited by {@link Settings#maxEventBytes()}, {@link Settings#maxKeyBytes()} and {@link
 * Settings#maxHeadersBytes()}. Sizes and characters are checked when the event is published.
 *
 * @param key events with the same key keep their order, and go to the same partition of the same shard until the stream grows
 *     ({@link EventSql#grow}) or keys move ({@link EventSql#moveShards}); {@code null}: any partition. Must not be empty or
 *     contain a NUL character.
 * @param value the payload, opaque to the library; UTF-8 encoded JSON if it is to be queried with SQL's JSON operators
 * @param headers short texts stored next to the payload, queryable with JSON operators in SQL. Names must not be empty;
 *     names and values must not contain a NUL character.
 * @param isTombstone whether the event has no value: it says that its key is deleted, and {@code value} is empty. An empty
 *     value of another event, or JSON's {@code null}, is a value. {@link #withHeaders} keeps it, a copy by {@code new
 *     Event(key, value, headers)} does not.
 */
public record Event(@Nullable String key, byte[] value, Map<String, String> headers, boolean isTombstone) {
    private static final byte[] NO_VALUE = {};

    /**
     * Copies the headers.
     *
     * @throws InvalidInputException if the value, the headers, or a header's name or value is null, or if a tombstone has no
     *     key or a value
     */
    public Event {
        InvalidInputException.requireGiven("event.value", value);
        InvalidInputException.requireGiven("event.headers", headers);
        if (isTombstone) {
            InvalidInputException.requireGiven("event.key", key);
            if (value.length > 0) {
                throw new InvalidInputException(
                        "event.value",
                        "must be empty, because the event is a tombstone, but has " + value.length + " bytes");
            }
        }
        headers = headers.isEmpty() ? Map.of() : copy(headers);
    }

    /** Creates an event with a value. */
    public Event(@Nullable String key, byte[] value, Map<String, String> headers) {
        this(key, value, headers, false);
    }

    private static Map<String, String> copy(Map<String, String> headers) {
        for (Map.Entry<@Nullable String, @Nullable String> header :
                nullable(headers).entrySet()) {
            String name = header.getKey();
            if (name == null) {
                throw new InvalidInputException("event.headers", "must not contain a null name");
            }
            if (header.getValue() == null) {
                throw new InvalidInputException(field(name), "must not be null");
            }
        }
        return Map.copyOf(headers);
    }

    /** A name with control characters would garble the message. */
    private static String field(String headerName) {
        boolean showable = headerName.length() <= 80 && headerName.chars().noneMatch(Character::isISOControl);
        return showable ? "event.headers[" + headerName + "]" : "event.headers";
    }

    /** Callers that are not checked for nulls may pass a map that contains some. */
    @SuppressWarnings({"unchecked", "rawtypes", "NullAway"})
    private static Map<@Nullable String, @Nullable String> nullable(Map<String, String> headers) {
        return (Map) headers;
    }

    /** Returns an event without a key and without headers. */
    public static Event of(byte[] value) {
        return new Event(null, value, Map.of());
    }

    /** Returns an event without headers. */
    public static Event of(String key, byte[] value) {
        return new Event(InvalidInputException.requireGiven("event.key", key), value, Map.of());
    }

    /**
     * Returns an event without a value, which says that the key is deleted: {@link EventSql#latest} returns nothing for the
     * key from then on, and compaction removes its earlier events.
     *
     * <p>To be published only when all processes that consume the stream, or relay outboxes, run a release that knows
     * tombstones: earlier ones read an empty value.
     */
    public static Event tombstone(String key) {
        return new Event(InvalidInputException.requireGiven("event.key", key), NO_VALUE, Map.of(), true);
    }

    /** Returns an event without a key whose value is the text encoded as UTF-8. */
    public static Event ofText(String text) {
        return of(utf8(text));
    }

    /** Returns an event whose value is the text encoded as UTF-8. */
    public static Event ofText(String key, String text) {
        return of(key, utf8(text));
    }

    private static byte[] utf8(String text) {
        return InvalidInputException.requireGiven("event.value", text).getBytes(StandardCharsets.UTF_8);
    }

    /** Returns a copy with one more header; a header with the same name is replaced. */
    public Event withHeader(String name, String headerValue) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, headerValue);
        return new Event(key, value, more, isTombstone);
    }

    /** Returns a copy with these headers in place of its own. */
    public Event withHeaders(Map<String, String> newHeaders) {
        return new Event(key, value, newHeaders, isTombstone);
    }

    /** Returns the value decoded as UTF-8; empty for a tombstone. */
    public String text() {
        return new String(value, StandardCharsets.UTF_8);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Event that
                && Objects.equals(key, that.key)
                && isTombstone == that.isTombstone
                && Arrays.equals(value, that.value)
                && headers.equals(that.headers);
    }

    @Override
    public int hashCode() {
        return Objects.hash(key, Arrays.hashCode(value), headers, isTombstone);
    }

    @Override
    public String toString() {
        return "Event[key=" + key + (isTombstone ? ", tombstone" : ", value=" + value.length + " bytes") + ", headers="
                + headers + "]";
    }
}
