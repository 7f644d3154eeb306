package io.eventsql.spring.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.Subscription;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.Lifecycle;

/**
 * One listener method and, while it runs, its member of the consumer. It may be stopped and started any number of times.
 * Thread-safe.
 */
public final class EventSqlListenerContainer implements Lifecycle {
    private static final Logger LOG = LoggerFactory.getLogger(EventSqlListenerContainer.class);

    private final String id;
    private final String method;
    private final ConsumerSpec spec;
    private final boolean autoStartup;
    private final Supplier<Subscription> subscribe;
    private @Nullable Subscription subscription;

    EventSqlListenerContainer(
            String id, String method, ConsumerSpec spec, boolean autoStartup, Supplier<Subscription> subscribe) {
        this.id = id;
        this.method = method;
        this.spec = spec;
        this.autoStartup = autoStartup;
        this.subscribe = subscribe;
    }

    /** Names it among the application's listeners. */
    public String id() {
        return id;
    }

    /** The consumer, as annotation and properties say together. */
    public ConsumerSpec spec() {
        return spec;
    }

    /** Whether it starts with the application. */
    public boolean isAutoStartup() {
        return autoStartup;
    }

    /** Takes part in the consumer from now on; does nothing if it does so already. */
    @Override
    public synchronized void start() {
        if (isRunning()) {
            return;
        }
        if (subscription != null) {
            subscription.close(); // it has lost everything to others by itself
        }
        subscription = subscribe.get();
        LOG.debug("Listener {} has started: {}", id, spec);
    }

    /**
     * Gives no further event to the method, waits for the calls under way at most {@link
     * io.eventsql.Settings#closeTimeout()}, commits what was handled and gives the partitions back; does nothing if it
     * does not run.
     */
    @Override
    public synchronized void stop() {
        if (subscription == null) {
            return;
        }
        subscription.close();
        subscription = null;
        LOG.debug("Listener {} has stopped", id);
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
