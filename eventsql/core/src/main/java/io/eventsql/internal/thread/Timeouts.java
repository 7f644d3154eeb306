package io.eventsql.internal.thread;

import java.time.Duration;

/** Timeouts that callers choose freely, for deadlines by {@link System#nanoTime()}. */
public final class Timeouts {
    /** A longer timeout is as good as none: the sum with the time now must not overflow. */
    private static final Duration MAX = Duration.ofDays(10_000);

    private Timeouts() {}

    /** Returns a timeout in nanoseconds: 0 if it is negative, the maximum if it is longer. */
    public static long nanos(Duration timeout) {
        if (timeout.isNegative()) {
            return 0;
        }
        return (timeout.compareTo(MAX) < 0 ? timeout : MAX).toNanos();
    }
}
