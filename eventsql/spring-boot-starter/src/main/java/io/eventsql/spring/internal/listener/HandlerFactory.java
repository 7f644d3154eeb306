package io.eventsql.spring.internal.listener;

import io.eventsql.InvalidInputException;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.Tombstone;
import io.eventsql.spring.internal.PropertyNames;
import io.eventsql.spring.internal.listener.ListenerMethodCheck.CheckedMethod;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.validation.Validator;

/**
 * Creates the handlers of listeners from their methods, and registers the types that these take.
 *
 * @param validator the application's
 */
record HandlerFactory(
        ConfigurableBeanFactory beans,
        EventSerializer serializer,
        EventTypes types,
        @Nullable Validator validator,
        EventSqlObservations observations) {

    /**
     * How a listener calls its methods.
     *
     * @param requiresType whether an event without a stored type is refused
     */
    record Calling(String consumer, boolean batch, boolean transactional, boolean requiresType) {}

    /** Returns the methods of a class that are handlers of its listener. */
    static Map<Method, EventSqlHandler> handlerMethods(Class<?> type) {
        return MethodIntrospector.selectMethods(type, (MethodIntrospector.MetadataLookup<EventSqlHandler>)
                method -> AnnotatedElementUtils.findMergedAnnotation(method, EventSqlHandler.class));
    }

    /** @throws io.eventsql.spring.InvalidListenerException if the method cannot be a listener */
    ListenerHandler ofMethod(ListenerName name, Object bean, Method method, Calling calling) {
        CheckedMethod checked = check(name, bean, method, calling);
        return handler(bean, checked, calling);
    }

    private CheckedMethod check(ListenerName name, Object bean, Method method, Calling calling) {
        CheckedMethod checked =
                new ListenerMethodCheck(name, method, calling.batch(), calling.transactional()).check(bean);
        @Nullable Class<?> payload = namedPayload(checked);
        if (payload != null && !EventTypes.isOpen(payload)) {
            try {
                types.register(payload);
            } catch (InvalidInputException e) {
                throw name.invalid(
                        "takes " + payload.getName() + ", whose name " + PropertyNames.problem(e),
                        "Annotate the class with @EventType(\"…\"); the name is stored with each event.",
                        e);
            }
        }
        return checked;
    }

    /** Returns the class of the payload; {@code null} if the method takes events of any type. */
    private static @Nullable Class<?> namedPayload(CheckedMethod method) {
        if (method.payload() == null) {
            return null;
        }
        Class<?> raw = ResolvableType.forType(method.payload()).toClass();
        return EventTypes.isNamed(raw) ? raw : null;
    }

    private ListenerHandler handler(Object bean, CheckedMethod method, Calling calling) {
        PayloadConverter converter = new PayloadConverter(serializer, types, calling.requiresType());
        ListenerArguments arguments =
                new ListenerArguments(converter, ApplicationConversionService.getSharedInstance(), beans, validator);
        return new ListenerMethod(
                bean,
                method.method(),
                calling.batch(),
                calling.transactional(),
                arguments,
                calling.consumer(),
                observations);
    }

    /** @throws io.eventsql.spring.InvalidListenerException if the class has no suitable handler methods */
    ListenerHandler ofClass(ListenerName name, Object bean, Class<?> type, Calling calling) {
        if (calling.batch()) {
            throw name.invalid(
                    "takes batches, but its methods take events of different types",
                    "Remove batch = true, or annotate a method with @EventSqlListener(batch = true).");
        }
        Map<Class<?>, ListenerHandler> byType = new LinkedHashMap<>();
        Map<Class<?>, ListenerName> names = new LinkedHashMap<>();
        @Nullable ListenerHandler others = null;
        @Nullable ListenerHandler tombstones = null;
        for (Map.Entry<Method, EventSqlHandler> found : handlerMethods(type).entrySet()) {
            ListenerName ofMethod = ListenerName.of(name.bean(), found.getKey());
            CheckedMethod method = check(ofMethod, bean, found.getKey(), calling);
            if (found.getValue().isDefault()) {
                if (others != null) {
                    throw ofMethod.invalid("is the second default handler", "Keep isDefault = true on one method.");
                }
                others = handler(bean, method, calling);
                continue;
            }
            if (method.payload() == Tombstone.class) {
                if (tombstones != null) {
                    throw ofMethod.invalid("is the second method that takes tombstones", "Remove one of them.");
                }
                tombstones = handler(bean, method, calling);
                continue;
            }
            @Nullable Class<?> payload = namedPayload(method);
            if (payload == null) {
                throw ofMethod.invalid(
                        "takes no payload whose type distinguishes its events",
                        "Take the class of a payload, or set isDefault = true.");
            }
            @Nullable ListenerName other = names.put(payload, ofMethod);
            if (other != null) {
                throw ofMethod.invalid(
                        "takes " + payload.getSimpleName() + " like " + other.declaration(), "Remove one of them.");
            }
            byType.put(payload, handler(bean, method, calling));
        }
        if (byType.isEmpty()) {
            throw name.invalid(
                    "has no handler of a type", "Annotate the methods that take the payloads with @EventSqlHandler.");
        }
        return new TypedHandlers(name, types, Map.copyOf(byType), tombstones, others, calling.requiresType());
    }
}
