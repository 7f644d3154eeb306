package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import org.jspecify.annotations.Nullable;

/**
 * Turns payloads into events, and stored events into payloads. A bean of this type replaces the default, which writes JSON
 * and takes {@link String} and {@code byte[]} as they are. Thread-safe.
 */
public interface EventSerializer {
    /** The header that says what the value is, such as {@value #JSON}. */
    String CONTENT_TYPE = "content-type";

    /** {@link #CONTENT_TYPE} of JSON. */
    String JSON = "application/json";

    /**
     * The event that is stored for a payload. Headers of {@code event} are kept; some may be added.
     *
     * @throws EventSerializationException if there is no form for this payload
     */
    Event serialize(String stream, OutgoingEvent event);

    /**
     * The payload of a stored event.
     *
     * @param type what the caller wants, generic types included
     * @return an instance of {@code type}; {@code null} only where the value says so, as JSON's {@code null} does
     * @throws EventSerializationException if the value is no such thing: it never will be
     */
    @Nullable
    Object deserialize(StoredEvent event, Type type);
}
