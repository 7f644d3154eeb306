package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener;
import io.eventsql.internal.thread.ForeignErrors;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The application's consumer listeners. They run on the library's threads, so whatever they throw is logged, and an
 * interrupt that they leave is cleared: it would end the next wait, or close a connection. Thread-safe.
 */
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
            } catch (Throwable e) { // also exceptions that are not declared, as of listeners in other languages
                ForeignErrors.log(
                        e, shown -> LOG.warn("Consumer listener {} failed; its exception is ignored", listener, shown));
            }
            if (Thread.interrupted()) {
                LOG.warn("Consumer listener {} left its thread interrupted; the interrupt is ignored", listener);
            }
        }
    }
}
