package io.eventsql.runner.load;

/**
 * One phase of load, either the warm-up or the measured phase. It ends when all its events are sent or its time is up,
 * whichever comes first.
 *
 * @param warmup whether it is a warm-up
 * @param startNanos the start time on the monotonic clock
 * @param endNanos the time from which no more calls are made; {@link Long#MAX_VALUE} for none
 * @param events the maximum number of events
 * @param anchor converts between monotonic and epoch times
 */
public record LoadPhase(boolean warmup, long startNanos, long endNanos, long events, ClockAnchor anchor) {

    /** Creates a phase with a fixed number of events. */
    public static LoadPhase ofEvents(boolean warmup, ClockAnchor anchor, long startNanos, long events) {
        return new LoadPhase(warmup, startNanos, Long.MAX_VALUE, events, anchor);
    }

    /** Creates a phase with a fixed duration. */
    public static LoadPhase ofNanos(boolean warmup, ClockAnchor anchor, long startNanos, long nanos) {
        // The range of event numbers.
        return new LoadPhase(warmup, startNanos, startNanos + nanos, 1_000_000_000_000L, anchor);
    }
}
