package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.internal.sql.HeadersJson;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import org.jspecify.annotations.Nullable;

/** Rejects input that the database would reject, before anything is buffered or sent. */
public final class EventValidator {
    /** Overhead of a row in the buffer and on the wire, in addition to its texts and bytes. */
    private static final int ROW_OVERHEAD_BYTES = 64;

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
        int bytes = ROW_OVERHEAD_BYTES + event.value().length;
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
            requireGiven("events[" + valid.size() + "]", event);
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

    private static void requireGiven(String field, @Nullable Object value) {
        if (value == null) {
            throw new InvalidInputException(field, "must not be null");
        }
    }

    private int validateKey(String key) {
        if (key.isEmpty()) {
            throw new InvalidInputException("event.key", "is empty; use null for an event without a key");
        }
        requireText("event.key", key);
        int bytes = utf8Length(key);
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
            requireText("event.headers", name);
            // A name with control characters would garble the message.
            boolean showable = name.length() <= 80 && name.chars().noneMatch(Character::isISOControl);
            requireText(showable ? "event.headers[" + name + "]" : "event.headers", header.getValue());
        }
        return event.headers();
    }

    private int requireHeadersSize(String json) {
        int bytes = utf8Length(json);
        if (bytes > settings.maxHeadersBytes()) {
            throw new InvalidInputException(
                    "event.headers",
                    "has " + bytes + " bytes as JSON; the limit is " + settings.maxHeadersBytes(),
                    "maxHeadersBytes");
        }
        return bytes;
    }

    /** PostgreSQL's text cannot contain NUL. A lone surrogate has no UTF-8 form and would silently become '?'. */
    private static void requireText(String field, String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == 0) {
                throw new InvalidInputException(field, "has a NUL character at position " + i);
            }
            if (Character.isSurrogate(c)) {
                if (Character.isLowSurrogate(c)
                        || i + 1 == text.length()
                        || !Character.isLowSurrogate(text.charAt(i + 1))) {
                    throw new InvalidInputException(field, "has half a surrogate pair at position " + i);
                }
                i++;
            }
        }
    }

    private static int utf8Length(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }
}
