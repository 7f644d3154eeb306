package io.eventsql.runner.sample;

import org.jspecify.annotations.Nullable;

/** Computes the rate of a monotonically increasing counter. For use by one thread. */
final class RateCounter {
    private static final double NANOS_PER_SECOND = 1e9;

    private boolean hasLast;
    private double last;
    private long lastNanos;

    /**
     * Returns the increase per second since the last update; {@code null} for the first update and after a decrease.
     */
    @Nullable
    Double update(double value, long nowNanos) {
        boolean known = hasLast && nowNanos > lastNanos && value >= last;
        double perSecond = known ? (value - last) * NANOS_PER_SECOND / (nowNanos - lastNanos) : 0;
        hasLast = true;
        last = value;
        lastNanos = nowNanos;
        return known ? perSecond : null;
    }
}
