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

    /** Returns an interval of which only the rate is known. */
    static MeasuredInterval ofRate(double eventsPerSecond, int eventsPerCall, Duration time) {
        double events = eventsPerSecond * time.toNanos() / 1e9;
        return new MeasuredInterval(Math.round(events), Math.round(events / eventsPerCall), time.toNanos());
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
