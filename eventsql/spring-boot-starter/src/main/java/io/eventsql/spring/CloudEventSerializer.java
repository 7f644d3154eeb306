package io.eventsql.spring;

import io.cloudevents.CloudEvent;
import io.cloudevents.CloudEventData;
import io.cloudevents.SpecVersion;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.rw.CloudEventRWException;
import io.cloudevents.types.Time;
import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Serializes and deserializes {@link CloudEvent}s in binary mode with the header names of the Kafka binding; delegates
 * other payloads. A CloudEvent's {@code partitionkey} becomes the key of an event without one. Thread-safe.
 */
public final class CloudEventSerializer implements EventSerializer {
    private static final String PREFIX = CloudEventHeaders.PREFIX;
    private static final byte[] NO_DATA = {};

    private final EventSerializer others;

    /** @param others serializes other payloads */
    public CloudEventSerializer(EventSerializer others) {
        this.others = Objects.requireNonNull(others, "others");
    }

    @Override
    public Event serialize(String stream, OutgoingEvent event) {
        return event.payload() instanceof CloudEvent cloudEvent
                ? write(cloudEvent, event)
                : others.serialize(stream, event);
    }

    @Override
    public @Nullable Object deserialize(StoredEvent event, Type type) {
        return type == CloudEvent.class ? read(event) : others.deserialize(event, type);
    }

    private static Event write(CloudEvent cloudEvent, OutgoingEvent event) {
        Map<String, String> headers = new LinkedHashMap<>();
        for (String name : cloudEvent.getAttributeNames()) {
            Object value = cloudEvent.getAttribute(name);
            if (value != null) {
                headers.put(name.equals("datacontenttype") ? CONTENT_TYPE : PREFIX + name, text(value));
            }
        }
        for (String name : cloudEvent.getExtensionNames()) {
            Object value = cloudEvent.getExtension(name);
            if (value != null) {
                headers.put(PREFIX + name, text(value));
            }
        }
        headers.putAll(event.headers());
        CloudEventData data = cloudEvent.getData();
        return new Event(keyOf(event, headers), data == null ? NO_DATA : data.toBytes(), headers);
    }

    private static @Nullable String keyOf(OutgoingEvent event, Map<String, String> headers) {
        return event.key() == null ? headers.get(PREFIX + "partitionkey") : event.key();
    }

    /** Returns the canonical text of an attribute's value. */
    private static String text(Object value) {
        return switch (value) {
            case OffsetDateTime time -> Time.writeTime(time);
            case byte[] bytes -> Base64.getEncoder().encodeToString(bytes);
            default -> value.toString();
        };
    }

    /**
     * Returns the event as a CloudEvent; the values of extensions are strings.
     *
     * @throws EventSerializationException if its headers are not those of a CloudEvent
     */
    public static CloudEvent read(StoredEvent event) {
        String version = event.headers().get(CloudEventHeaders.SPEC_VERSION);
        if (version == null) {
            throw new EventSerializationException("The event at " + event.position()
                    + " is not a CloudEvent in binary mode: it lacks the header " + CloudEventHeaders.SPEC_VERSION);
        }
        try {
            CloudEventBuilder builder = CloudEventBuilder.fromSpecVersion(SpecVersion.parse(version));
            event.headers().forEach((header, value) -> setAttribute(builder, header, value));
            if (event.value().length > 0) {
                builder.withData(event.value());
            }
            return builder.build();
        } catch (CloudEventRWException | IllegalStateException | IllegalArgumentException e) {
            throw new EventSerializationException(
                    "The event at " + event.position() + " is not a valid CloudEvent: " + e.getMessage(), e);
        }
    }

    private static void setAttribute(CloudEventBuilder builder, String header, String value) {
        if (header.equalsIgnoreCase(CONTENT_TYPE)) {
            builder.withDataContentType(value);
        } else if (header.startsWith(PREFIX) && !header.equals(CloudEventHeaders.SPEC_VERSION)) {
            builder.withContextAttribute(header.substring(PREFIX.length()).toLowerCase(Locale.ROOT), value);
        }
    }
}
