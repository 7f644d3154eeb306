package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Serializes only {@code String}, as UTF-8, and {@code byte[]}, unchanged. Thread-safe. */
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

    /** As {@link #serialize}, for other payloads than {@code String} and {@code byte[]}. */
    protected Event serializeObject(String stream, OutgoingEvent event) {
        throw new EventSerializationException(
                "A " + event.payload().getClass().getName() + " cannot be published to " + stream
                        + ": payloads other than String and byte[] need Jackson (spring-boot-starter-jackson) or an"
                        + " EventSerializer bean");
    }

    /** As {@link #deserialize}, for other types than {@code String} and {@code byte[]}. */
    protected @Nullable Object deserializeObject(StoredEvent event, Type type) {
        throw new EventSerializationException("The event at " + event.position() + " cannot be read as "
                + type.getTypeName()
                + ": payloads other than String and byte[] need Jackson (spring-boot-starter-jackson)"
                + " or an EventSerializer bean");
    }
}
