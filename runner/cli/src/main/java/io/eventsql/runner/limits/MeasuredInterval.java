package io.eventsql.runner.limits;

/**
 * One stretch of measuring.
 *
 * @param events how many events were stored or read
 * @param calls in how many calls or transactions
 * @param nanos how long it took, nanoseconds
 */
record MeasuredInterval(long events, long calls, long nanos) {

    /** Events/s; 0 where nothing was measured. */
    double eventsPerSecond() {
        return nanos <= 0 ? 0 : events * 1e9 / nanos;
    }
}
