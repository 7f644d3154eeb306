package io.eventsql.spring.internal.listener;

import io.eventsql.spring.InvalidListenerException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A listener method or class, as messages name it.
 *
 * @param bean the name of its bean
 * @param declaration the class, and of a method its name and parameters
 */
record ListenerName(String bean, String declaration) {

    static ListenerName of(String bean, Method method) {
        String parameters = Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", "));
        return new ListenerName(
                bean, method.getDeclaringClass().getSimpleName() + "." + method.getName() + "(" + parameters + ")");
    }

    static ListenerName of(String bean, Class<?> type) {
        return new ListenerName(bean, type.getSimpleName());
    }

    InvalidListenerException invalid(String problem, String action) {
        return invalid(problem, action, null);
    }

    InvalidListenerException invalid(String problem, String action, @Nullable Throwable cause) {
        return new InvalidListenerException(toString(), problem, action, cause);
    }

    @Override
    public String toString() {
        return "bean '" + bean + "', " + declaration;
    }
}
