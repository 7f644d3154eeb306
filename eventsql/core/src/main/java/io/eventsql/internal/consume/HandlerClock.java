package io.eventsql.internal.consume;

/** How long one call of a handler has been running. Started and stopped by one thread, read by any. */
final class HandlerClock {
    private static final long STOPPED = Long.MIN_VALUE;

    private volatile long startedAt = STOPPED;

    void start() {
        startedAt = System.nanoTime();
    }

    /** Returns how long the call took, in nanoseconds. */
    long stop() {
        long nanos = System.nanoTime() - startedAt;
        startedAt = STOPPED;
        return nanos;
    }

    /** 0 if no call is running. */
    long runningNanos() {
        long since = startedAt;
        return since == STOPPED ? 0 : System.nanoTime() - since;
    }
}
