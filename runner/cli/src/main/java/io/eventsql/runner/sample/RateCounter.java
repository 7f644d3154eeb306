package io.eventsql.runner.sample;

import org.jspecify.annotations.Nullable;

/** Makes a rate of a number that only grows. For one thread. */
final class RateCounter {
    private static final double NANOS_PER_SECOND = 1e9;

    private boolean hasLast;
    private double last;
    private long lastNanos;

    /** How much it has grown each second since the last look; {@code null} at the first and where it has shrunk. */
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
