package io.eventsql.spring.internal.listener;

import io.eventsql.EventFailedException;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlObservations;
import java.lang.reflect.Method;
import java.lang.reflect.UndeclaredThrowableException;
import java.sql.Connection;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.invocation.InvocableHandlerMethod;

/** Handles events by a method: resolves the arguments, then calls it. Thread-safe. */
final class ListenerMethod implements ListenerHandler {
    private static final Logger LOG = LoggerFactory.getLogger(ListenerMethod.class);

    private final Invocable invocable;
    private final boolean batch;
    private final boolean transactional;
    private final String consumer;
    private final EventSqlObservations observations;

    /**
     * @param method checked by {@link ListenerMethodCheck}
     * @param consumer the name of its consumer
     */
    ListenerMethod(
            Object bean,
            Method method,
            boolean batch,
            boolean transactional,
            ListenerArguments arguments,
            String consumer,
            EventSqlObservations observations) {
        this.invocable = new Invocable(bean, method);
        this.invocable.setMessageMethodArgumentResolvers(batch ? arguments.ofBatch() : arguments.ofEvent());
        this.batch = batch;
        this.transactional = transactional;
        this.consumer = consumer;
        this.observations = observations;
    }

    @Override
    public void handle(List<StoredEvent> events, @Nullable Connection connection) throws Exception {
        if (batch) {
            observations.handleBatch(consumer, events, () -> logged(events, () -> handleBatch(events, connection)));
        } else {
            StoredEvent event = events.getFirst();
            observations.handle(consumer, event, () -> logged(events, () -> handleOne(event, connection)));
        }
    }

    /** Logs a failure while the observation is open, so that the log line has the trace's id. */
    private void logged(List<StoredEvent> events, EventSqlObservations.Handling call) throws Exception {
        try {
            call.run();
        } catch (Exception | Error e) {
            StoredEvent failed = events.get(e instanceof EventFailedException failure ? indexOf(events, failure) : 0);
            LOG.warn(
                    "Listener {} of consumer {} failed on the event at {} (key {}): {}",
                    invocable.getShortLogMessage(),
                    consumer,
                    failed.position(),
                    failed.key(),
                    e.toString());
            throw e;
        }
    }

    private void handleOne(StoredEvent event, @Nullable Connection connection) throws Exception {
        @Nullable Object[] arguments;
        try {
            arguments = invocable.arguments(new EventMessage(event, connection));
        } catch (Exception e) {
            throw ListenerArguments.argumentFailure(event, e);
        }
        invocable.call(arguments);
    }

    private void handleBatch(List<StoredEvent> events, @Nullable Connection connection) throws Exception {
        @Nullable Object[] arguments;
        try {
            arguments = invocable.arguments(BatchMessage.of(events, connection));
        } catch (EventFailedException e) {
            int failed = indexOf(events, e);
            // The library counts the events before the failed one as handled; in a transaction it rolls back and passes
            // them again.
            if (failed > 0 && !transactional) {
                handleBatch(events.subList(0, failed), connection);
            }
            throw e;
        }
        invocable.call(arguments);
    }

    private static int indexOf(List<StoredEvent> events, EventFailedException failure) {
        for (int i = 0; i < events.size(); i++) {
            if (events.get(i).position().equals(failure.position())) {
                return i;
            }
        }
        return 0;
    }

    /** Separates the two halves of the invocation: the event causes failures of the first, the method those of the second. */
    private static final class Invocable extends InvocableHandlerMethod {
        Invocable(Object bean, Method method) {
            super(bean, method);
        }

        @Nullable
        Object[] arguments(Message<?> message) throws Exception {
            return getMethodArgumentValues(message);
        }

        void call(@Nullable Object[] arguments) throws Exception {
            try {
                doInvoke(arguments);
            } catch (UndeclaredThrowableException e) { // a checked exception of an advice
                Throwable cause = e.getUndeclaredThrowable();
                if (cause instanceof Exception exception) {
                    throw exception;
                }
                throw e;
            }
        }
    }
}
