package io.eventsql.spring.internal.listener;

import io.eventsql.EventFailedException;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventPayloadException;
import io.eventsql.spring.EventSerializationException;
import io.eventsql.spring.Tombstone;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.convert.ConversionService;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.MessagingException;
import org.springframework.messaging.converter.MessageConversionException;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.handler.annotation.support.HeaderMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.HeadersMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.MessageMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.PayloadMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolverComposite;
import org.springframework.messaging.support.MessageHeaderAccessor;
import org.springframework.validation.Validator;

/** Resolves the arguments of listener methods with spring-messaging's resolvers and those for EventSQL's types. */
final class ListenerArguments {
    private final HandlerMethodArgumentResolverComposite ofEvent = new HandlerMethodArgumentResolverComposite();
    private final HandlerMethodArgumentResolverComposite ofBatch = new HandlerMethodArgumentResolverComposite();

    ListenerArguments(
            PayloadConverter converter,
            ConversionService conversions,
            @Nullable ConfigurableBeanFactory beans,
            @Nullable Validator validator) {
        ofEvent.addResolvers(
                new ConnectionResolver(),
                new EventResolver(),
                new OwnHeadersResolver(),
                new HeaderMethodArgumentResolver(conversions, beans),
                new HeadersMethodArgumentResolver(),
                new MessageMethodArgumentResolver(converter),
                new PayloadResolver(converter, validator)); // last: it supports every parameter
        ofBatch.addResolvers(new ConnectionResolver(), new EachEventResolver(ofEvent));
    }

    HandlerMethodArgumentResolverComposite ofEvent() {
        return ofEvent;
    }

    HandlerMethodArgumentResolverComposite ofBatch() {
        return ofBatch;
    }

    /** Whether a parameter's type alone determines its argument, so that it is not the payload. */
    static boolean isResolvedByType(Class<?> type) {
        return type == Connection.class
                || type == StoredEvent.class
                || type == EventPosition.class
                || Message.class.isAssignableFrom(type)
                || type == MessageHeaders.class
                || MessageHeaderAccessor.class.isAssignableFrom(type)
                || PayloadConverter.isCloudEvent(type);
    }

    /** The connection of the transaction. */
    private static final class ConnectionResolver implements HandlerMethodArgumentResolver {
        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.getParameterType() == Connection.class;
        }

        @Override
        public @Nullable Object resolveArgument(MethodParameter parameter, Message<?> message) {
            return message instanceof BatchMessage batch ? batch.connection() : ((EventMessage) message).connection();
        }
    }

    /** The event itself. */
    private static final class EventResolver implements HandlerMethodArgumentResolver {
        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            Class<?> type = parameter.getParameterType();
            return type == StoredEvent.class || type == EventPosition.class;
        }

        @Override
        public Object resolveArgument(MethodParameter parameter, Message<?> message) {
            StoredEvent event = ((EventMessage) message).getPayload();
            return parameter.getParameterType() == StoredEvent.class ? event : event.position();
        }
    }

    /** The event's own headers, whose values are all strings. */
    private static final class OwnHeadersResolver implements HandlerMethodArgumentResolver {
        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.hasParameterAnnotation(Headers.class)
                    && parameter.getParameterType() == Map.class
                    && ResolvableType.forType(parameter.getGenericParameterType())
                                    .asMap()
                                    .getGeneric(1)
                                    .resolve()
                            == String.class;
        }

        @Override
        public Object resolveArgument(MethodParameter parameter, Message<?> message) {
            return ((EventMessage) message).getPayload().headers();
        }
    }

    /** The payload; nothing for a tombstone, where the parameter allows that. */
    private static final class PayloadResolver extends PayloadMethodArgumentResolver {
        private final PayloadConverter converter;

        PayloadResolver(PayloadConverter converter, @Nullable Validator validator) {
            super(converter, validator);
            this.converter = converter;
        }

        @Override
        public @Nullable Object resolveArgument(MethodParameter parameter, Message<?> message) throws Exception {
            StoredEvent event = ((EventMessage) message).getPayload();
            Class<?> type = parameter.getParameterType();
            if (!event.isTombstone() || type == Tombstone.class || PayloadConverter.isCloudEvent(type)) {
                return resolvePayload(parameter, message);
            }
            if (type == Optional.class) {
                return Optional.empty();
            }
            @Nullable Payload payload = parameter.getParameterAnnotation(Payload.class);
            if (parameter.isOptional() || (payload != null && !payload.required())) {
                return null;
            }
            throw PayloadConverter.unexpectedTombstone(event, PayloadConverter.payloadType(parameter));
        }

        private @Nullable Object resolvePayload(MethodParameter parameter, Message<?> message) throws Exception {
            Class<?> target = parameter.getParameterType();
            boolean isOptional = target == Optional.class;
            if (isOptional) {
                target = ResolvableType.forType(PayloadConverter.payloadType(parameter))
                        .toClass();
            }
            // Spring does not convert for a parameter that could take the StoredEvent itself, such as an Object.
            if (target == StoredEvent.class || !target.isInstance(message.getPayload())) {
                return super.resolveArgument(parameter, message);
            }
            @Nullable Object payload = converter.fromMessage(message, target, parameter);
            if (payload == null) {
                throw new MessageConversionException(message, "The payload is null, but required for " + parameter);
            }
            validate(message, parameter, payload);
            return isOptional ? Optional.of(payload) : payload;
        }
    }

    /** Lists of the arguments of a method for single events. */
    private static final class EachEventResolver implements HandlerMethodArgumentResolver {
        private final HandlerMethodArgumentResolver ofEvent;

        EachEventResolver(HandlerMethodArgumentResolver ofEvent) {
            this.ofEvent = ofEvent;
        }

        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.getParameterType() == List.class;
        }

        @Override
        public Object resolveArgument(MethodParameter parameter, Message<?> message) throws Exception {
            MethodParameter element = new ElementParameter(parameter);
            List<EventMessage> events = ((BatchMessage) message).events();
            List<@Nullable Object> elements = new ArrayList<>(events.size());
            for (EventMessage event : events) {
                try {
                    elements.add(ofEvent.resolveArgument(element, event));
                } catch (Exception e) {
                    throw new EventFailedException(event.getPayload(), argumentFailure(event.getPayload(), e));
                }
            }
            return elements;
        }
    }

    /**
     * Returns what to throw for an argument that could not be resolved: an exception with the event that is not retried,
     * unless a serializer failed for another reason, such as a registry that is unavailable.
     */
    static Exception argumentFailure(StoredEvent event, Exception cause) {
        boolean isOfEvent = cause instanceof EventSerializationException // its value
                || cause instanceof MessagingException // a missing header or an invalid payload
                || cause instanceof ConversionException; // a header's type
        return isOfEvent ? new EventPayloadException(event, String.valueOf(cause.getMessage()), cause) : cause;
    }
}
