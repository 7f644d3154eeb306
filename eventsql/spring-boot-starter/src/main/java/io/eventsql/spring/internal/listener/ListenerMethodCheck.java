package io.eventsql.spring.internal.listener;

import io.eventsql.spring.InvalidListenerException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.interceptor.AsyncExecutionInterceptor;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.MethodParameter;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.SynthesizingMethodParameter;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.scheduling.annotation.Async;

/** Rejects at start a method that would fail with every event. */
final class ListenerMethodCheck {
    private final ListenerName name;
    private final Method method;
    private final boolean batch;
    private final boolean transactional;

    ListenerMethodCheck(ListenerName name, Method method, boolean batch, boolean transactional) {
        this.name = name;
        this.method = method;
        this.batch = batch;
        this.transactional = transactional;
    }

    /**
     * A method that can be a listener.
     *
     * @param method the method to call on the bean, which may be a proxy
     * @param payload the type of one event's payload; {@code null} if it takes none
     */
    record CheckedMethod(Method method, @Nullable Type payload) {}

    /**
     * Checks the method.
     *
     * @throws InvalidListenerException if it cannot be a listener
     */
    CheckedMethod check(Object bean) {
        requireCallable(bean);
        requireNoResult();
        requireSynchronous(bean);
        @Nullable Type payload = null;
        List<String> payloadNames = new ArrayList<>();
        for (int i = 0; i < method.getParameterCount(); i++) {
            MethodParameter parameter = SynthesizingMethodParameter.forExecutable(method, i)
                    .withContainingClass(AopUtils.getTargetClass(bean));
            if (isPayload(parameter)) {
                payloadNames.add(describe(parameter));
            }
            @Nullable Type type = payloadType(parameter);
            payload = type == null ? payload : type;
        }
        if (payloadNames.size() > 1) {
            throw invalid(
                    "has parameters of which only one can be the payload: " + String.join(", ", payloadNames),
                    "Annotate the others with @Header or @Headers, or take the whole StoredEvent. Inject"
                            + " dependencies into the bean's constructor.");
        }
        if (method.getParameterCount() == 0) {
            throw invalid("takes no parameter", "Let it take the payload or the StoredEvent.");
        }
        try {
            return new CheckedMethod(AopUtils.selectInvocableMethod(method, bean.getClass()), payload);
        } catch (IllegalStateException e) {
            throw name.invalid(
                    "cannot be called through the bean's proxy",
                    "Declare it in an interface of the bean, make it public, or use proxies of the class"
                            + " (spring.aop.proxy-target-class=true).",
                    e);
        }
    }

    private void requireCallable(Object bean) {
        if (Modifier.isStatic(method.getModifiers())) {
            throw invalid("is static", "Make it a method of the bean.");
        }
        if (!AopUtils.isCglibProxy(bean)) {
            return;
        }
        if (Modifier.isPrivate(method.getModifiers())) {
            throw invalid(
                    "is private, but the bean is a proxy, so that a call would not reach the bean itself",
                    "Make it package-private, protected or public.");
        }
        if (Modifier.isFinal(method.getModifiers())) {
            throw invalid(
                    "is final, but the bean is a proxy, so that a call would not reach the bean itself",
                    "Remove final.");
        }
    }

    private void requireNoResult() {
        Class<?>[] types = method.getParameterTypes();
        if (types.length > 0 && types[types.length - 1].getName().equals("kotlin.coroutines.Continuation")) {
            throw invalid(
                    "is a suspend function, whose end would not be awaited",
                    "Make it an ordinary function; it runs on a virtual thread and may block.");
        }
        if (method.getReturnType() != void.class && method.getReturnType() != Void.class) {
            throw invalid(
                    "returns " + method.getReturnType().getSimpleName()
                            + ", but results are ignored and asynchronous ones not awaited",
                    "Make it void; it runs on a virtual thread and may block until its work is done.");
        }
    }

    /** Returns whether its proxy calls annotated methods on other threads: without @EnableAsync it does not. */
    private static boolean isAsynchronous(Object bean) {
        return bean instanceof Advised proxy
                && Arrays.stream(proxy.getAdvisors())
                        .anyMatch(advisor -> advisor.getAdvice() instanceof AsyncExecutionInterceptor);
    }

    /** A call of an asynchronous method returns at once, so that its event would count as handled before it is. */
    private void requireSynchronous(Object bean) {
        boolean isAnnotated = AnnotatedElementUtils.hasAnnotation(method, Async.class)
                || AnnotatedElementUtils.hasAnnotation(AopUtils.getTargetClass(bean), Async.class);
        if (isAnnotated && isAsynchronous(bean)) {
            throw invalid(
                    "runs asynchronously, so that its end would not be awaited",
                    "Remove @Async; it runs on a virtual thread and may block.");
        }
    }

    /** Returns the type of the payload in a parameter that is the payload or a message with it. */
    private @Nullable Type payloadType(MethodParameter parameter) {
        MethodParameter ofEvent = batch && parameter.getParameterType() == List.class ? element(parameter) : parameter;
        boolean isMessage = Message.class.isAssignableFrom(ofEvent.getParameterType());
        return isMessage || isPayload(parameter) ? PayloadConverter.payloadType(ofEvent) : null;
    }

    /** Checks one parameter; returns whether it is the payload. */
    private boolean isPayload(MethodParameter parameter) {
        if (parameter.getParameterType() == Connection.class) {
            requireTransactional(parameter);
            return false;
        }
        MethodParameter ofEvent = batch ? element(parameter) : parameter;
        Class<?> type = ofEvent.getParameterType();
        if (parameter.hasParameterAnnotation(Headers.class)) {
            if (!Map.class.isAssignableFrom(type)) {
                throw invalid(
                        "has a parameter with @Headers that is not a Map: " + describe(parameter),
                        "Take a Map<String, String>.");
            }
            return false;
        }
        if (parameter.hasParameterAnnotation(Header.class) || ListenerArguments.isResolvedByType(type)) {
            return false;
        }
        @Nullable Payload payload = parameter.getParameterAnnotation(Payload.class);
        if (payload != null && !payload.expression().isEmpty()) {
            throw invalid(
                    "has an expression in @Payload: " + describe(parameter),
                    "Take the payload and call its methods instead.");
        }
        if (!batch && payload == null && Collection.class.isAssignableFrom(type)) {
            throw invalid(
                    "takes " + describe(parameter) + ", but only one event at a time",
                    "Set batch = true to get batches; if each event's payload is a list, annotate the parameter"
                            + " with @Payload.");
        }
        return true;
    }

    private void requireTransactional(MethodParameter parameter) {
        if (!transactional) {
            throw invalid(
                    "takes " + describe(parameter) + ", but is not transactional",
                    "Set transactional = true, or inject the DataSource into the bean's constructor.");
        }
    }

    private MethodParameter element(MethodParameter parameter) {
        boolean isListOfKnown = parameter.getParameterType() == List.class
                && parameter.getGenericParameterType() instanceof ParameterizedType;
        if (!isListOfKnown) {
            throw invalid(
                    "takes batches, but its parameter is not a List: " + describe(parameter),
                    "Take a List of payloads or events, such as List<StoredEvent>, or remove batch = true.");
        }
        MethodParameter element = new ElementParameter(parameter);
        if (element.getParameterType() == Connection.class || element.getParameterType() == MessageHeaders.class) {
            throw invalid(
                    "takes " + describe(parameter),
                    "Take one Connection for the batch, and headers as @Headers List<Map<String, String>>.");
        }
        return element;
    }

    private InvalidListenerException invalid(String problem, String action) {
        return name.invalid(problem, action);
    }

    private static String describe(MethodParameter parameter) {
        return parameter.getGenericParameterType().getTypeName().replaceAll("[\\w.]+\\.", "") + " (number "
                + (parameter.getParameterIndex() + 1) + ")";
    }
}
