package io.eventsql.spring.listener;

import io.eventsql.EventFailedException;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventPayloadException;
import io.eventsql.spring.EventSerializationException;
import io.eventsql.spring.EventSerializer;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.convert.ConversionService;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.MessagingException;
import org.springframework.messaging.converter.MessageConverter;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.support.HeaderMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.HeadersMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.MessageMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.PayloadMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolverComposite;
import org.springframework.messaging.support.MessageHeaderAccessor;
import org.springframework.validation.Validator;

/** Makes the arguments of listener methods: spring-messaging's resolvers, and a few for what is EventSQL's own. */
final class ListenerArguments {
    private final HandlerMethodArgumentResolverComposite ofEvent = new HandlerMethodArgumentResolverComposite();
    private final HandlerMethodArgumentResolverComposite ofBatch = new HandlerMethodArgumentResolverComposite();

    ListenerArguments(
            EventSerializer serializer,
            ConversionService conversions,
            @Nullable ConfigurableBeanFactory beans,
            @Nullable Validator validator) {
        MessageConverter converter = new PayloadConverter(serializer);
        ofEvent.addResolvers(
                new ConnectionResolver(),
                new EventResolver(),
                new OwnHeadersResolver(),
                new HeaderMethodArgumentResolver(conversions, beans),
                new HeadersMethodArgumentResolver(),
                new MessageMethodArgumentResolver(converter),
                new PayloadMethodArgumentResolver(converter, validator)); // last: it takes everything
        ofBatch.addResolvers(new ConnectionResolver(), new EachEventResolver(ofEvent));
    }

    HandlerMethodArgumentResolverComposite ofEvent() {
        return ofEvent;
    }

    HandlerMethodArgumentResolverComposite ofBatch() {
        return ofBatch;
    }

    /** Whether a parameter is given by its type alone, so that it is not the payload. */
    static boolean isGivenByType(Class<?> type) {
        return type == Connection.class
                || type == StoredEvent.class
                || type == EventPosition.class
                || Message.class.isAssignableFrom(type)
                || type == MessageHeaders.class
                || MessageHeaderAccessor.class.isAssignableFrom(type)
                || type.getName().equals("io.cloudevents.CloudEvent"); // of a library that may not be there
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

    /** The event as the library gave it. */
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

    /** The event's own headers, which are all texts. */
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

    /** Lists of what a method for single events takes. */
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
                    throw new EventFailedException(event.getPayload(), unfit(event.getPayload(), e));
                }
            }
            return elements;
        }
    }

    /**
     * What to throw for an argument that could not be made: which event it was, and that trying again is of no use, unless
     * a serializer failed for another reason, such as a registry that does not answer.
     */
    static Exception unfit(StoredEvent event, Exception cause) {
        boolean isOfEvent = cause instanceof EventSerializationException // its value
                || cause instanceof MessagingException // what is missing or not valid
                || cause instanceof ConversionException; // a header's type
        return isOfEvent ? new EventPayloadException(event, String.valueOf(cause.getMessage()), cause) : cause;
    }
}
