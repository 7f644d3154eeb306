package io.eventsql.spring;

import io.eventsql.ConsumerSpec;
import org.springframework.context.Lifecycle;

/**
 * A listener method and, while it runs, its member of the consumer. It can be stopped and started any number of times.
 * Thread-safe.
 */
public interface EventSqlListenerContainer extends Lifecycle {
    /** Returns its id among the application's listeners. */
    String id();

    /** Returns the consumer, as annotation and properties define it. */
    ConsumerSpec spec();

    /** Whether it starts with the application. */
    boolean isAutoStartup();

    /** Joins the consumer; does nothing if it runs. */
    @Override
    void start();

    /**
     * Leaves the consumer; does nothing if it does not run. The method gets no further event; calls in progress have
     * {@link io.eventsql.Settings#closeTimeout()} to end. Then the offsets of handled events are committed and the
     * partitions released.
     */
    @Override
    void stop();
}
