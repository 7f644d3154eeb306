package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Collects delivered events. Thread-safe. */
final class DeliveryCollector implements DeliveryListener {
    private final List<Event> events = new ArrayList<>();
    private Throwable failure;

    @Override
    public synchronized <T> void delivered(
            Iterable<T> page, Function<? super T, @Nullable String> key, Function<? super T, byte[]> value) {
        page.forEach(one -> events.add(new Event(key.apply(one), value.apply(one), Map.of())));
        notifyAll();
    }

    @Override
    public synchronized void failed(Throwable why) {
        failure = why;
        notifyAll();
    }

    /** Waits for the given number of events and returns all received ones. Relies on the timeout of the test. */
    synchronized List<Event> await(int count) throws InterruptedException {
        while (events.size() < count && failure == null) {
            wait();
        }
        if (failure != null) {
            throw new AssertionError("consuming failed", failure);
        }
        return List.copyOf(events);
    }
}
