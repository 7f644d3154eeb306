package io.eventsql.internal.consume;

/** Measures how long a call of a handler has been running. Started and stopped by one thread, read by any. */
final class HandlerClock {
    private static final long STOPPED = Long.MIN_VALUE;

    private volatile long startedAt = STOPPED;

    void start() {
        startedAt = System.nanoTime();
    }

    /** Stops the clock; returns the duration of the call in nanoseconds. */
    long stop() {
        long nanos = System.nanoTime() - startedAt;
        startedAt = STOPPED;
        return nanos;
    }

    /** Returns the duration of the running call so far, in nanoseconds; 0 if no call is running. */
    long runningNanos() {
        long started = startedAt;
        return started == STOPPED ? 0 : System.nanoTime() - started;
    }
}
