package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.ArrayList;
import java.util.List;

/** Keeps what is delivered. Thread-safe. */
final class DeliveryCollector implements DeliveryListener {
    private final List<Event> events = new ArrayList<>();
    private Throwable failure;

    @Override
    public synchronized void delivered(List<Event> more) {
        events.addAll(more);
        notifyAll();
    }

    @Override
    public synchronized void failed(Throwable why) {
        failure = why;
        notifyAll();
    }

    /** What arrived, once it is so many events; the test's timeout ends it if they do not come. */
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
