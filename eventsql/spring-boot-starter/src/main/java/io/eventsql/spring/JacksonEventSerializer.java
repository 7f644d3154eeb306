package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/** Serializes payloads as JSON with Jackson; {@code String} and {@code byte[]} are not changed. Thread-safe. */
public final class JacksonEventSerializer extends PlainEventSerializer {
    private final JsonMapper mapper;

    public JacksonEventSerializer(JsonMapper mapper) {
        this.mapper = Objects.requireNonNull(mapper, "mapper");
    }

    /** With Jackson's default mapper. */
    static JacksonEventSerializer withDefaults() {
        return new JacksonEventSerializer(JsonMapper.builder().build());
    }

    @Override
    protected Event serializeObject(String stream, OutgoingEvent event) {
        try {
            return new Event(event.key(), mapper.writeValueAsBytes(event.payload()), withContentType(event.headers()));
        } catch (JacksonException e) {
            throw new EventSerializationException(
                    "A " + event.payload().getClass().getName() + " for " + stream + " cannot be written as JSON: "
                            + e.getOriginalMessage(),
                    e);
        }
    }

    private static Map<String, String> withContentType(Map<String, String> headers) {
        if (headers.isEmpty()) {
            return Map.of(CONTENT_TYPE, JSON);
        }
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.putIfAbsent(CONTENT_TYPE, JSON);
        return more;
    }

    @Override
    protected @Nullable Object deserializeObject(StoredEvent event, Type type) {
        try {
            return mapper.readValue(event.value(), mapper.constructType(type));
        } catch (JacksonException e) {
            throw new EventSerializationException(
                    "The event at " + event.position() + " cannot be read from JSON as " + type.getTypeName() + ": "
                            + e.getOriginalMessage(),
                    e);
        }
    }
}
