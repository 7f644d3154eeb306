package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import org.jspecify.annotations.Nullable;

/**
 * Serializes payloads to events, and deserializes stored events. A bean of this type replaces the default, which writes
 * JSON and does not change {@link String} and {@code byte[]}. Thread-safe.
 */
public interface EventSerializer {
    /** The header with the media type of the value, such as {@value #JSON}. */
    String CONTENT_TYPE = "content-type";

    /** {@link #CONTENT_TYPE} of JSON. */
    String JSON = "application/json";

    /**
     * Returns the event for a payload. Keeps the headers of {@code event}; may add some. Not called for a {@link Tombstone}.
     *
     * @throws EventSerializationException if the payload cannot be serialized
     */
    Event serialize(String stream, OutgoingEvent event);

    /**
     * Returns the payload of a stored event. Called for a tombstone only if the type is that of a CloudEvent.
     *
     * @param type the requested type, which may be generic
     * @return an instance of {@code type}; {@code null} only if the value represents it, as JSON's {@code null} does
     * @throws EventSerializationException if the value cannot be deserialized as this type; a retry does not help
     */
    @Nullable
    Object deserialize(StoredEvent event, Type type);
}
