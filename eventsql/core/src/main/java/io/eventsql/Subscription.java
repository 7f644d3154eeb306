package io.eventsql;

import java.time.Duration;

/** A running member of a consumer, started by {@link EventSql#subscribe}. Thread-safe. */
public interface Subscription extends AutoCloseable {

    /** What was started. */
    ConsumerSpec spec();

    /**
     * Whether it still takes part: {@code false} once closed, or once another member took over all its partitions.
     */
    boolean isRunning();

    /**
     * Ends the member: no further events are given to the handler, running handlers are waited for, what was handled
     * is committed.
     *
     * @return {@code false} if a handler was still running at the timeout; its events will be handled again
     */
    boolean close(Duration timeout);

    /** Closes with {@link Settings#closeTimeout()}. */
    @Override
    void close();
}
