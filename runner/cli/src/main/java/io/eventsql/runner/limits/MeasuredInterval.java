package io.eventsql.runner.limits;

/**
 * One measured interval.
 *
 * @param events the events stored or read
 * @param calls the calls or transactions
 * @param nanos the duration in nanoseconds
 */
record MeasuredInterval(long events, long calls, long nanos) {

    /** Returns the rate in events/s; 0 if nothing was measured. */
    double eventsPerSecond() {
        return nanos <= 0 ? 0 : events * 1e9 / nanos;
    }
}
