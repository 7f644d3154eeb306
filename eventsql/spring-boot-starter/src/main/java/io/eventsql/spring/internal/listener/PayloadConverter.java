package io.eventsql.spring.internal.listener;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSerializationException;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.Tombstone;
import java.lang.reflect.Type;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.core.GenericTypeResolver;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.converter.SmartMessageConverter;

/**
 * Deserializes payloads for spring-messaging's resolvers, with the generic type of the parameter or the class of the event's
 * stored type. An event of another type than the parameter's is refused.
 */
final class PayloadConverter implements SmartMessageConverter {
    private final EventSerializer serializer;
    private final EventTypes types;
    private final boolean requiresType;

    /** @param requiresType whether an event without a stored type is refused */
    PayloadConverter(EventSerializer serializer, EventTypes types, boolean requiresType) {
        this.serializer = serializer;
        this.types = types;
        this.requiresType = requiresType;
    }

    @Override
    public @Nullable Object fromMessage(Message<?> message, Class<?> targetClass, @Nullable Object hint) {
        StoredEvent event = (StoredEvent) message.getPayload();
        Type type = hint instanceof MethodParameter parameter ? payloadType(parameter) : targetClass;
        if (type == Tombstone.class) {
            if (!event.isTombstone()) {
                throw new EventSerializationException(
                        "The event at " + event.position() + " has a value, but its listener takes only tombstones");
            }
            return Tombstone.INSTANCE;
        }
        if (event.isTombstone()) {
            if (!isCloudEvent(targetClass)) {
                throw unexpectedTombstone(event, type);
            }
            return serializer.deserialize(event, type);
        }
        return serializer.deserialize(event, types.resolve(event, type, requiresType));
    }

    /** Returns the failure of a tombstone whose listener requires a value. */
    static EventSerializationException unexpectedTombstone(StoredEvent event, Type expected) {
        return new EventSerializationException(
                "The event at " + event.position() + " is a tombstone: it has no value, but "
                        + expected.getTypeName() + " is expected. To receive tombstones, annotate the payload with"
                        + " @Payload(required = false), or take a Tombstone or the StoredEvent");
    }

    /** Returns whether the type is that of a CloudEvent, whose library is optional. */
    static boolean isCloudEvent(Class<?> type) {
        return type.getName().equals("io.cloudevents.CloudEvent");
    }

    /** Returns the type of the payload in a parameter that is the payload, an {@code Optional} or a message with it. */
    static Type payloadType(MethodParameter parameter) {
        Type type = parameter.getGenericParameterType();
        if (parameter.getParameterType() == Optional.class) {
            type = ResolvableType.forType(type).getGeneric(0).getType();
        } else if (Message.class.isAssignableFrom(parameter.getParameterType())) {
            type = ResolvableType.forType(type).as(Message.class).getGeneric(0).getType();
        }
        return GenericTypeResolver.resolveType(type, parameter.getContainingClass());
    }

    @Override
    public @Nullable Object fromMessage(Message<?> message, Class<?> targetClass) {
        return fromMessage(message, targetClass, null);
    }

    @Override
    public @Nullable Message<?> toMessage(Object payload, @Nullable MessageHeaders headers) {
        throw new UnsupportedOperationException("listeners only deserialize");
    }

    @Override
    public @Nullable Message<?> toMessage(
            Object payload, @Nullable MessageHeaders headers, @Nullable Object conversionHint) {
        throw new UnsupportedOperationException("listeners only deserialize");
    }
}
