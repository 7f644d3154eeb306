package io.eventsql;

import java.time.Duration;

/** A running member of a consumer, started by {@link EventSql#subscribe}. Thread-safe. */
public interface Subscription extends AutoCloseable {

    /** Returns the specification it was started with. */
    ConsumerSpec spec();

    /**
     * Returns whether the member is running: {@code false} once it was closed, or once the consumer was deleted on all shards
     * ({@link ConsumerControl#delete}). A member without partitions is running.
     */
    boolean isRunning();

    /**
     * Closes the member: starts no further handler calls, waits for running ones, commits the offsets of handled events
     * and releases the partitions. Closing it again has no effect. A {@link ConsumerListener} may close it, too: on a thread that
     * renews leases, handlers that are running are not waited for.
     *
     * @param timeout the timeout of all steps together. A fifth of it, at most 5 s, is reserved for the steps after the
     *     handlers have ended; they get at least 1 s.
     * @return {@code false} if a handler was still running at the timeout; its events will be handled again
     */
    boolean close(Duration timeout);

    /** Closes the member with the timeout {@link Settings#closeTimeout()}. */
    @Override
    void close();
}
