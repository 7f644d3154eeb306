package io.eventsql.spring.listener;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A method with {@link io.eventsql.spring.EventSqlListener} that cannot be a listener as it is written. */
public final class InvalidListenerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String action;

    /** @param action what to do about it, as a sentence */
    InvalidListenerException(ListenerName name, String problem, String action) {
        this(name, problem, action, null);
    }

    InvalidListenerException(ListenerName name, String problem, String action, @Nullable Throwable cause) {
        super("@EventSqlListener on " + name + ", " + problem, cause);
        this.action = action;
    }

    /** What to do about it, as a sentence. */
    public String action() {
        return action;
    }

    /** The method as people name it. */
    record ListenerName(String bean, Method method) {
        @Override
        public String toString() {
            String parameters = Arrays.stream(method.getParameterTypes())
                    .map(Class::getSimpleName)
                    .collect(Collectors.joining(", "));
            return "bean '" + bean + "', " + method.getDeclaringClass().getSimpleName() + "." + method.getName() + "("
                    + parameters + ")";
        }
    }
}
