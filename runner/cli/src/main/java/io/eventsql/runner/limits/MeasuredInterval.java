package io.eventsql.runner.limits;

import java.time.Duration;

/**
 * One measured interval.
 *
 * @param events the events stored or read
 * @param calls the calls or transactions
 * @param nanos the duration in nanoseconds
 */
record MeasuredInterval(long events, long calls, long nanos) {

    /**
     * Returns an interval of which only the rate is known.
     *
     * @param eventsPerSecond above 0
     * @param time its approximate duration
     */
    static MeasuredInterval ofRate(double eventsPerSecond, int eventsPerCall, Duration time) {
        long calls = Math.max(1, Math.round(eventsPerSecond * time.toNanos() / 1e9 / eventsPerCall));
        long events = calls * eventsPerCall;
        return new MeasuredInterval(events, calls, Math.round(events * 1e9 / eventsPerSecond));
    }

    /** Returns the sum of this interval and another one. */
    MeasuredInterval plus(long moreEvents, long moreCalls, long moreNanos) {
        return new MeasuredInterval(events + moreEvents, calls + moreCalls, nanos + moreNanos);
    }

    /** Returns the rate in events/s; 0 if nothing was measured. */
    double eventsPerSecond() {
        return nanos <= 0 ? 0 : events * 1e9 / nanos;
    }
}
