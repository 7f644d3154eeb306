package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The user's listeners: what they throw is logged. Thread-safe. */
public final class Listeners {
    private static final Logger LOG = LoggerFactory.getLogger(Listeners.class);

    private final List<ConsumerListener> all;

    public Listeners(List<ConsumerListener> all) {
        this.all = List.copyOf(all);
    }

    boolean any() {
        return !all.isEmpty();
    }

    void tell(Consumer<ConsumerListener> news) {
        for (ConsumerListener listener : all) {
            try {
                news.accept(listener);
            } catch (RuntimeException | Error e) { // the library's threads must go on
                LOG.warn("A listener failed", e);
            }
        }
    }
}
