package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The application's consumer listeners. What they throw is logged. Thread-safe. */
public final class Listeners {
    private static final Logger LOG = LoggerFactory.getLogger(Listeners.class);

    private final List<ConsumerListener> listeners;

    public Listeners(List<ConsumerListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    boolean any() {
        return !listeners.isEmpty();
    }

    void call(Consumer<ConsumerListener> callback) {
        for (ConsumerListener listener : listeners) {
            try {
                callback.accept(listener);
            } catch (RuntimeException | Error e) { // the library's threads must not end
                LOG.warn("Consumer listener {} failed; its exception is ignored", listener, e);
            }
        }
    }
}
