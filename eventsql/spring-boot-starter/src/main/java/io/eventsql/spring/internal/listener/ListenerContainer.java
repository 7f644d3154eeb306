package io.eventsql.spring.internal.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.Subscription;
import io.eventsql.spring.EventSqlListenerContainer;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A listener method with its subscription while it runs. Thread-safe. */
final class ListenerContainer implements EventSqlListenerContainer {
    private static final Logger LOG = LoggerFactory.getLogger(ListenerContainer.class);

    private final String id;
    private final String method;
    private final ConsumerSpec spec;
    private final boolean autoStartup;
    private final Supplier<Subscription> subscribe;
    private @Nullable Subscription subscription;

    ListenerContainer(
            String id, String method, ConsumerSpec spec, boolean autoStartup, Supplier<Subscription> subscribe) {
        this.id = id;
        this.method = method;
        this.spec = spec;
        this.autoStartup = autoStartup;
        this.subscribe = subscribe;
    }

    @Override
    public String id() {
        return id;
    }

    @Override
    public ConsumerSpec spec() {
        return spec;
    }

    @Override
    public boolean isAutoStartup() {
        return autoStartup;
    }

    @Override
    public synchronized void start() {
        if (isRunning()) {
            return;
        }
        if (subscription != null) {
            subscription.close(); // it has lost all its partitions to other members
        }
        subscription = subscribe.get();
        LOG.debug("Listener {} started: {}", id, spec);
    }

    @Override
    public void stop() {
        stop(Subscription::close);
    }

    /** Stops; calls in progress have this long to end. */
    void stop(Duration timeout) {
        stop(running -> {
            if (!running.close(timeout)) {
                LOG.warn(
                        "Listener {} did not stop within {} ms; the events it is handling will be handled again",
                        id,
                        timeout.toMillis());
            }
        });
    }

    private synchronized void stop(Consumer<Subscription> close) {
        if (subscription == null) {
            return;
        }
        close.accept(subscription);
        subscription = null;
        LOG.debug("Listener {} stopped", id);
    }

    @Override
    public synchronized boolean isRunning() {
        return subscription != null && subscription.isRunning();
    }

    @Override
    public String toString() {
        return id + " (" + method + ")";
    }
}
