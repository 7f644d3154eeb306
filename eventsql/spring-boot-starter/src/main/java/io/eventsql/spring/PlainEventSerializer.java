package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Takes text, as UTF-8, and bytes as they are, and nothing else. Thread-safe. */
public class PlainEventSerializer implements EventSerializer {

    @Override
    public Event serialize(String stream, OutgoingEvent event) {
        return switch (event.payload()) {
            case byte[] bytes -> new Event(event.key(), bytes, event.headers());
            case String text -> new Event(event.key(), text.getBytes(StandardCharsets.UTF_8), event.headers());
            default -> serializeObject(stream, event);
        };
    }

    @Override
    public @Nullable Object deserialize(StoredEvent event, Type type) {
        if (type == byte[].class) {
            return event.value();
        }
        if (type == String.class || type == CharSequence.class) {
            return event.text();
        }
        return deserializeObject(event, type);
    }

    /** As {@link #serialize}, of what is neither text nor bytes. */
    protected Event serializeObject(String stream, OutgoingEvent event) {
        throw new EventSerializationException(
                "A " + event.payload().getClass().getName() + " cannot be published to " + stream
                        + ": without Jackson (spring-boot-starter-jackson) or an EventSerializer bean of yours, payloads"
                        + " are String or byte[]");
    }

    /** As {@link #deserialize}, of what is neither text nor bytes. */
    protected @Nullable Object deserializeObject(StoredEvent event, Type type) {
        throw new EventSerializationException("The event at " + event.position() + " cannot be read as "
                + type.getTypeName() + ": without Jackson (spring-boot-starter-jackson) or an EventSerializer bean of"
                + " yours, payloads are String or byte[]");
    }
}
