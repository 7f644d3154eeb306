package io.eventsql.runner.testing;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;

/**
 * A system whose publish calls are answered by a {@link SyntheticService}, and that delivers each call's events to all
 * consumers at the moment of its answer. For use by one thread.
 */
public final class SyntheticDriver implements Driver {
    private final SyntheticService service;
    private final Map<String, List<DeliveryListener>> consumers = new HashMap<>();
    public final Map<String, List<Event>> published = new HashMap<>();
    private UnaryOperator<List<Event>> onDelivery = events -> events;

    public SyntheticDriver(SyntheticService service) {
        this.service = service;
    }

    /** Sets a transformation of the events of a call before delivery. */
    public void onDelivery(UnaryOperator<List<Event>> change) {
        onDelivery = change;
    }

    @Override
    public String version() {
        return "synthetic";
    }

    @Override
    public void createStream(String name, int partitions) {
        consumers.put(name, new ArrayList<>());
        published.put(name, new ArrayList<>());
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                service.publish(events);
                stored(stream, events);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return service.publishAsync(events).thenRun(() -> stored(stream, events));
            }
        };
    }

    private void stored(String stream, List<Event> events) {
        published.get(stream).addAll(events);
        consumers.get(stream).forEach(consumer -> consumer.delivered(onDelivery.apply(events)));
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
        consumers.get(stream).add(listener);
        if (!published.get(stream).isEmpty()) {
            listener.delivered(List.copyOf(published.get(stream)));
        }
        return () -> consumers.get(stream).remove(listener);
    }

    @Override
    public void clear(String stream) {
        published.get(stream).clear();
    }

    @Override
    public void close() {}
}
