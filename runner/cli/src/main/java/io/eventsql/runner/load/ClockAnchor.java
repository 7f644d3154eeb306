package io.eventsql.runner.load;

/**
 * A point in time on both clocks, for conversion between them. Created for each phase of a run, so that a correction of
 * the wall clock during a long run does not show up as latency.
 *
 * @param nanos the time on the monotonic clock
 * @param epochMicros the same time on the wall clock
 */
public record ClockAnchor(long nanos, long epochMicros) {

    /** Returns an anchor at the current time. */
    public static ClockAnchor now(LoadClock clock) {
        return new ClockAnchor(clock.nanos(), clock.epochMicros());
    }

    /** Converts a monotonic time to epoch microseconds, truncating nanoseconds. */
    public long epochMicrosAt(long monotonicNanos) {
        return epochMicros + Math.floorDiv(monotonicNanos - nanos, 1_000);
    }

    /** Converts an epoch time to monotonic nanoseconds. */
    public long nanosAt(long atEpochMicros) {
        return nanos + (atEpochMicros - epochMicros) * 1_000;
    }
}
