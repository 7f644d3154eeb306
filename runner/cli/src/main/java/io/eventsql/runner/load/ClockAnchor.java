package io.eventsql.runner.load;

/**
 * One moment on both clocks, to convert between them. Taken anew for each phase of a run, so that a correction of the
 * wall clock during a long run does not show as latency.
 *
 * @param nanos the moment on the monotonic clock
 * @param epochMicros the same moment on the wall clock
 */
public record ClockAnchor(long nanos, long epochMicros) {

    /** This moment. */
    public static ClockAnchor now(LoadClock clock) {
        return new ClockAnchor(clock.nanos(), clock.epochMicros());
    }

    /** A monotonic time as epoch microseconds; parts of a microsecond are dropped. */
    public long epochMicrosAt(long monotonicNanos) {
        return epochMicros + Math.floorDiv(monotonicNanos - nanos, 1_000);
    }

    /** An epoch time as monotonic nanoseconds. */
    public long nanosAt(long atEpochMicros) {
        return nanos + (atEpochMicros - epochMicros) * 1_000;
    }
}
