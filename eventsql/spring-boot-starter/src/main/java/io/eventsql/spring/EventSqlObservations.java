package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;

/**
 * Observes publishing and handling: a timer and, with a tracer, a span for each call. The trace context is propagated in
 * the events' headers, so also through the outbox. Without an {@link ObservationRegistry}, calls are made directly.
 * Thread-safe.
 */
public final class EventSqlObservations {
    private final ObservationRegistry registry;
    private final EventSqlPublishConvention publishConvention;
    private final EventSqlHandleConvention handleConvention;

    public EventSqlObservations(
            ObservationRegistry registry,
            EventSqlPublishConvention publishConvention,
            EventSqlHandleConvention handleConvention) {
        this.registry = registry;
        this.publishConvention = publishConvention;
        this.handleConvention = handleConvention;
    }

    /** Returns an instance that observes nothing. */
    public static EventSqlObservations none() {
        return new EventSqlObservations(
                ObservationRegistry.NOOP, EventSqlPublishConvention.DEFAULT, EventSqlHandleConvention.DEFAULT);
    }

    /** A call of a handler. */
    @FunctionalInterface
    public interface Handling {
        void run() throws Exception;
    }

    /**
     * Publishes events and waits for the result.
     *
     * @param publish receives the events with the headers of the trace context
     */
    public <T> T publish(String stream, List<Event> events, Function<List<Event>, T> publish) {
        if (registry.isNoop() || events.isEmpty()) {
            return publish.apply(events);
        }
        EventSqlPublishContext context = new EventSqlPublishContext(stream, events);
        return observation(context).observe(() -> {
            T result = publish.apply(context.eventsWithHeaders());
            stored(context, result);
            return result;
        });
    }

    /** As {@link #publish}, without waiting; the observation ends when the future completes. */
    public <T> CompletableFuture<T> publishAsync(
            String stream, List<Event> events, Function<List<Event>, CompletableFuture<T>> publish) {
        if (registry.isNoop() || events.isEmpty()) {
            return publish.apply(events);
        }
        EventSqlPublishContext context = new EventSqlPublishContext(stream, events);
        Observation observation = observation(context).start();
        CompletableFuture<T> future;
        try {
            future = observation.scoped(() -> publish.apply(context.eventsWithHeaders()));
        } catch (RuntimeException | Error e) { // of the call itself
            observation.stop();
            throw e;
        }
        return future.whenComplete((result, failure) -> {
            if (failure == null) {
                stored(context, result);
            } else {
                Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
                observation.error(cause == null ? failure : cause);
            }
            observation.stop();
        });
    }

    private Observation observation(EventSqlPublishContext context) {
        return Observation.createNotStarted(
                publishConvention, EventSqlPublishConvention.DEFAULT, () -> context, registry);
    }

    private static void stored(EventSqlPublishContext context, Object result) {
        if (result instanceof EventPosition position) {
            context.setPosition(position);
        }
    }

    /** Calls a handler that takes one event. */
    public void handle(String consumer, StoredEvent event, Handling handling) throws Exception {
        if (registry.isNoop()) {
            handling.run();
        } else {
            observe(new EventSqlHandleContext(consumer, List.of(event), false), handling);
        }
    }

    /**
     * Calls a handler that takes a batch.
     *
     * @param events of one partition, at least one
     */
    public void handleBatch(String consumer, List<StoredEvent> events, Handling handling) throws Exception {
        if (registry.isNoop()) {
            handling.run();
        } else {
            observe(new EventSqlHandleContext(consumer, events, true), handling);
        }
    }

    private void observe(EventSqlHandleContext context, Handling handling) throws Exception {
        Observation observation = Observation.createNotStarted(
                handleConvention, EventSqlHandleConvention.DEFAULT, () -> context, registry);
        observation.observeChecked(handling::run);
    }
}
