package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.AnnotationIntrospector;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.json.JsonMapper;

/**
 * Serializes payloads as JSON with Jackson; {@code String} and {@code byte[]} are not changed. Thread-safe.
 *
 * <p>A payload that lacks what its class must have cannot be deserialized: record components and creator parameters that are
 * primitive, {@code @JsonProperty(required = true)}, or non-null under JSpecify ({@code @NullMarked}, {@code @NonNull}). A
 * payload of an earlier {@link EventType#version()} is converted by {@link EventUpcaster}s first. Such components of records are
 * always written, also by a mapper that leaves out empty values or zeros.
 */
public final class JacksonEventSerializer extends PlainEventSerializer {
    private final JsonMapper mapper;
    private final Upcasters upcasters;

    public JacksonEventSerializer(JsonMapper mapper) {
        this(mapper, List.of());
    }

    /**
     * Creates a serializer that reads earlier versions of payloads.
     *
     * @param upcasters in any order; at most one for each type and version
     * @throws InvalidInputException if two convert the same version, or one converts a version that its type never had
     */
    public JacksonEventSerializer(JsonMapper mapper, Collection<? extends EventUpcaster> upcasters) {
        this.mapper = requiring(Objects.requireNonNull(mapper, "mapper"));
        this.upcasters = new Upcasters(upcasters);
    }

    /** With Jackson's default mapper. */
    static JacksonEventSerializer withDefaults() {
        return new JacksonEventSerializer(JsonMapper.builder().build());
    }

    private static JsonMapper requiring(JsonMapper mapper) {
        AnnotationIntrospector annotations = mapper.deserializationConfig().getAnnotationIntrospector();
        return mapper.rebuild()
                .annotationIntrospector(AnnotationIntrospector.pair(new RequiredProperties(), annotations))
                .build();
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
        JavaType javaType = mapper.constructType(type);
        Class<?> raw = javaType.getRawClass();
        try {
            if (!EventTypes.isNamed(raw)) {
                return mapper.readValue(event.value(), javaType);
            }
            int version = Upcasters.storedVersion(event, raw);
            return version == EventTypes.version(raw)
                    ? mapper.readValue(event.value(), javaType)
                    : mapper.treeToValue(
                            upcasters.upcast(event, raw, mapper.readTree(event.value()), version), javaType);
        } catch (JacksonException e) {
            throw new EventSerializationException(
                    "The event at " + event.position() + " cannot be read from JSON as " + type.getTypeName() + ": "
                            + e.getOriginalMessage() + location(e),
                    e);
        }
    }

    /** Returns the field, such as {@code (at lines[0].cents)}. */
    private static String location(JacksonException failure) {
        StringBuilder path = new StringBuilder();
        for (JacksonException.Reference step : failure.getPath()) {
            if (step.getPropertyName() == null) {
                path.append('[').append(step.getIndex()).append(']');
            } else {
                path.append(path.isEmpty() ? "" : ".").append(step.getPropertyName());
            }
        }
        return path.isEmpty() ? "" : " (at " + path + ")";
    }
}
