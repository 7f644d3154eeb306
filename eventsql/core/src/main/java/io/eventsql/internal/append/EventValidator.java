package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyTracking;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.internal.sql.HeadersJson;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import org.jspecify.annotations.Nullable;

/** Rejects input that the database would reject, before anything is buffered or sent. */
public final class EventValidator {
    /**
     * What an event takes in the buffer in addition to its texts and bytes: the objects of a call with one event, and its
     * future. What the application attaches to the future is not counted.
     */
    private static final int EVENT_OVERHEAD_BYTES = 256;

    private final Settings settings;

    public EventValidator(Settings settings) {
        this.settings = settings;
    }

    /**
     * An event that can be stored.
     *
     * @param value {@code null}: a tombstone
     * @param headers the headers as JSON; {@code null} if there are none
     * @param bytes its size in buffers and batches
     */
    public record Valid(
            @Nullable String key,
            byte @Nullable [] value,
            @Nullable String headers,
            int bytes) {}

    /**
     * Validates the stream and the event of a call.
     *
     * @throws InvalidInputException naming the field and the limit
     */
    public Valid validate(String stream, Event event) {
        requireGiven("stream", stream);
        requireGiven("event", event);
        return validate(event);
    }

    private Valid validate(Event event) {
        int bytes = EVENT_OVERHEAD_BYTES + event.value().length;
        if (event.value().length > settings.maxEventBytes()) {
            throw new InvalidInputException(
                    "event.value",
                    "has " + event.value().length + " bytes; the limit is " + settings.maxEventBytes(),
                    "maxEventBytes");
        }
        String key = event.key();
        if (key != null) {
            bytes += validateKey(key);
        }
        String headers = null;
        if (!event.headers().isEmpty()) {
            headers = HeadersJson.encode(validatedHeaders(event));
            bytes += requireHeadersSize(headers);
        }
        return new Valid(key, event.isTombstone() ? null : event.value(), headers, bytes);
    }

    /**
     * Validates the stream and the events of a call.
     *
     * @throws InvalidInputException naming the field and the limit
     */
    public List<Valid> validateAll(String stream, List<Event> events) {
        requireGiven("stream", stream);
        requireGiven("events", events);
        if (events.size() > settings.maxBatchEvents()) {
            throw new InvalidInputException(
                    "events",
                    "has " + events.size() + " events; the limit of one call is " + settings.maxBatchEvents(),
                    "maxBatchEvents");
        }
        List<Valid> valid = new ArrayList<>(events.size());
        long bytes = 0;
        for (Event event : events) {
            if (event == null) {
                throw missing("events[" + valid.size() + "]");
            }
            Valid one = validate(event);
            bytes += one.bytes();
            valid.add(one);
        }
        if (bytes > settings.maxBatchBytes() && valid.size() > 1) {
            throw new InvalidInputException(
                    "events",
                    "has " + bytes + " bytes; the limit of one call is " + settings.maxBatchBytes(),
                    "maxBatchBytes");
        }
        return valid;
    }

    /** Rejects a stream that does not count the events of keys. */
    static void requireKeyVersions(StreamSpec stream) {
        if (stream.keyTracking() == KeyTracking.OFF) {
            throw new InvalidInputException(
                    "stream",
                    "must count the events of its keys, but " + stream.name()
                            + " was created without: see StreamSpec.withKeyVersions");
        }
    }

    /**
     * Returns the version that the key of the events must have; {@code null}: any.
     *
     * @throws InvalidInputException if the stream does not count the events of keys, or the events do not have one key
     */
    public static @Nullable Long expectedVersion(StreamSpec stream, List<Valid> events, ExpectedVersion expected) {
        requireGiven("expectedVersion", expected);
        if (expected.isAny()) {
            return null;
        }
        requireKeyVersions(stream);
        String key = events.isEmpty() ? null : events.getFirst().key();
        if (key == null || !events.stream().allMatch(event -> key.equals(event.key()))) {
            throw new InvalidInputException(
                    "events", "must be one or more and have the same key, if a version is expected");
        }
        return expected.version();
    }

    private static void requireGiven(String field, @Nullable Object value) {
        if (value == null) {
            throw missing(field);
        }
    }

    private static InvalidInputException missing(String field) {
        return new InvalidInputException(field, "must not be null");
    }

    private int validateKey(String key) {
        if (key.isEmpty()) {
            throw new InvalidInputException("event.key", "is empty; use null for an event without a key");
        }
        int invalid = Utf8.indexOfInvalid(key);
        if (invalid >= 0) {
            throw invalidText("event.key", key, invalid);
        }
        int bytes = Utf8.length(key);
        if (bytes > settings.maxKeyBytes()) {
            throw new InvalidInputException(
                    "event.key", "has " + bytes + " bytes; the limit is " + settings.maxKeyBytes(), "maxKeyBytes");
        }
        return bytes;
    }

    private static Map<String, String> validatedHeaders(Event event) {
        for (Entry<String, String> header : event.headers().entrySet()) {
            String name = header.getKey();
            if (name.isEmpty()) {
                throw new InvalidInputException("event.headers", "has a header with an empty name");
            }
            int invalid = Utf8.indexOfInvalid(name);
            if (invalid >= 0) {
                throw invalidText("event.headers", name, invalid);
            }
            invalid = Utf8.indexOfInvalid(header.getValue());
            if (invalid >= 0) {
                throw invalidText(fieldOf(name), header.getValue(), invalid);
            }
        }
        return event.headers();
    }

    private int requireHeadersSize(String json) {
        int bytes = Utf8.length(json);
        if (bytes > settings.maxHeadersBytes()) {
            throw new InvalidInputException(
                    "event.headers",
                    "has " + bytes + " bytes as JSON; the limit is " + settings.maxHeadersBytes(),
                    "maxHeadersBytes");
        }
        return bytes;
    }

    /** PostgreSQL's text cannot contain NUL. A lone surrogate has no UTF-8 form and would silently become '?'. */
    private static InvalidInputException invalidText(String field, String text, int at) {
        String what = text.charAt(at) == 0 ? "a NUL character" : "half a surrogate pair";
        return new InvalidInputException(field, "has " + what + " at position " + at);
    }

    /** A name with control characters would garble the message. */
    private static String fieldOf(String headerName) {
        boolean showable = headerName.length() <= 80 && headerName.chars().noneMatch(Character::isISOControl);
        return showable ? "event.headers[" + headerName + "]" : "event.headers";
    }
}
