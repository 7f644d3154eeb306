package io.eventsql.spring.listener;

import io.eventsql.EventFailedException;
import io.eventsql.StoredEvent;
import io.eventsql.spring.observation.EventSqlObservations;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.invocation.InvocableHandlerMethod;

/** The handler of a listener: makes the arguments, then calls the method. Thread-safe. */
final class ListenerMethod {
    private final Invocable invocable;
    private final boolean batch;
    private final boolean transactional;
    private final String consumer;
    private final EventSqlObservations observations;

    /**
     * @param method one that was checked by {@link ListenerMethodCheck}
     * @param consumer for whom it handles events
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

    /**
     * Handles one event, or many if the method takes lists.
     *
     * @throws io.eventsql.spring.EventPayloadException if an argument cannot be made; of a batch: as its cause
     * @throws Exception whatever the method throws
     */
    void handle(List<StoredEvent> events, @Nullable Connection connection) throws Exception {
        if (batch) {
            observations.handleBatch(consumer, events, () -> handleBatch(events, connection));
        } else {
            StoredEvent event = events.getFirst();
            observations.handle(consumer, event, () -> handleOne(event, connection));
        }
    }

    private void handleOne(StoredEvent event, @Nullable Connection connection) throws Exception {
        @Nullable Object[] arguments;
        try {
            arguments = invocable.arguments(new EventMessage(event, connection));
        } catch (Exception e) {
            throw ListenerArguments.unfit(event, e);
        }
        invocable.call(arguments);
    }

    private void handleBatch(List<StoredEvent> events, @Nullable Connection connection) throws Exception {
        @Nullable Object[] arguments;
        try {
            arguments = invocable.arguments(BatchMessage.of(events, connection));
        } catch (EventFailedException e) {
            int failed = indexOf(events, e);
            // The library takes the events before the one that failed for handled; in a transaction it rolls back and
            // hands them over again.
            if (failed > 0 && !transactional) {
                handleBatch(events.subList(0, failed), connection);
            }
            throw e;
        }
        invocable.call(arguments);
    }

    private static int indexOf(List<StoredEvent> events, EventFailedException failure) {
        return Math.toIntExact(events.stream()
                .takeWhile(event -> !event.position().equals(failure.position()))
                .count());
    }

    /** Opens the two halves of the invocation: what fails in the first is the event's fault, in the second the method's. */
    private static final class Invocable extends InvocableHandlerMethod {
        Invocable(Object bean, Method method) {
            super(bean, method);
        }

        @Nullable
        Object[] arguments(Message<?> message) throws Exception {
            return getMethodArgumentValues(message);
        }

        void call(@Nullable Object[] arguments) throws Exception {
            doInvoke(arguments);
        }
    }
}
