package io.eventsql.runner.load;

import java.util.function.LongSupplier;

/**
 * One phase of load, either the warm-up or the measured phase. It ends when all its events are sent or its time is up,
 * whichever comes first.
 *
 * @param warmup whether it is a warm-up
 * @param startNanos the start time on the monotonic clock
 * @param end returns the time from which no more calls are made; {@link Long#MAX_VALUE} for none, or while it is unknown
 * @param events the maximum number of events
 * @param anchor converts between monotonic and epoch times
 */
public record LoadPhase(boolean warmup, long startNanos, LongSupplier end, long events, ClockAnchor anchor) {
    /** The range of event numbers. */
    private static final long EVENTS_MAX = 1_000_000_000_000L;

    /** Creates a phase with a fixed number of events. */
    public static LoadPhase ofEvents(boolean warmup, ClockAnchor anchor, long startNanos, long events) {
        return new LoadPhase(warmup, startNanos, () -> Long.MAX_VALUE, events, anchor);
    }

    /** Creates a phase with a fixed duration. */
    public static LoadPhase ofNanos(boolean warmup, ClockAnchor anchor, long startNanos, long nanos) {
        long endNanos = startNanos + nanos;
        return until(warmup, anchor, startNanos, () -> endNanos);
    }

    /** Creates a phase whose end becomes known while it runs. */
    public static LoadPhase until(boolean warmup, ClockAnchor anchor, long startNanos, LongSupplier end) {
        return new LoadPhase(warmup, startNanos, end, EVENTS_MAX, anchor);
    }

    /** Returns the time from which no more calls are made; {@link Long#MAX_VALUE} for none, or while it is unknown. */
    public long endNanos() {
        return end.getAsLong();
    }
}
