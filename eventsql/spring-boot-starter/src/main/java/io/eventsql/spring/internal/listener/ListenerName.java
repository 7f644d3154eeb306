package io.eventsql.spring.internal.listener;

import io.eventsql.spring.InvalidListenerException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A listener method, as messages name it. */
record ListenerName(String bean, Method method) {

    InvalidListenerException invalid(String problem, String action) {
        return invalid(problem, action, null);
    }

    InvalidListenerException invalid(String problem, String action, @Nullable Throwable cause) {
        return new InvalidListenerException(toString(), problem, action, cause);
    }

    @Override
    public String toString() {
        String parameters = Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", "));
        return "bean '" + bean + "', " + method.getDeclaringClass().getSimpleName() + "." + method.getName() + "("
                + parameters + ")";
    }
}
