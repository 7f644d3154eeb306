package io.eventsql.runner.drivers;

import io.eventsql.EventHandler;
import io.eventsql.StoredEvent;
import io.eventsql.runner.driver.DeliveryListener;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Handles one event at a time, and sleeps with each like a handler that calls another service. Reports a failure if two
 * events of a key are handled at once. Thread-safe.
 */
final class SingleEventHandler implements EventHandler {
    private final DeliveryListener listener;
    private final Duration time;
    /** The keys of the events in progress. */
    private final Set<String> running = ConcurrentHashMap.newKeySet();

    /** @param time how long to sleep; may be zero */
    SingleEventHandler(DeliveryListener listener, Duration time) {
        this.listener = listener;
        this.time = time;
    }

    @Override
    public void handle(StoredEvent event) throws InterruptedException {
        String key = event.key();
        if (key != null && !running.add(key)) {
            listener.failed(new IllegalStateException("two events of the key " + key + " are handled at once"));
        }
        try {
            if (time.isPositive()) {
                Thread.sleep(time);
            }
            listener.delivered(List.of(event), StoredEvent::key, StoredEvent::value);
        } finally {
            if (key != null) {
                running.remove(key);
            }
        }
    }
}
