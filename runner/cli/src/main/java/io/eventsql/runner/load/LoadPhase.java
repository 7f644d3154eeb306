package io.eventsql.runner.load;

/**
 * One stretch of load: the warm-up or what is measured. It ends when its events are used up or its time is over,
 * whichever comes first.
 *
 * @param warmup whether it is outside of what is measured
 * @param startNanos when it starts, on the monotonic clock
 * @param endNanos when no more calls are made; {@link Long#MAX_VALUE}: never
 * @param events how many events it has at most
 * @param anchor converts its times to epoch microseconds
 */
public record LoadPhase(boolean warmup, long startNanos, long endNanos, long events, ClockAnchor anchor) {

    /** A phase of a number of events. */
    public static LoadPhase ofEvents(boolean warmup, ClockAnchor anchor, long startNanos, long events) {
        return new LoadPhase(warmup, startNanos, Long.MAX_VALUE, events, anchor);
    }

    /** A phase of a length of time. */
    public static LoadPhase ofNanos(boolean warmup, ClockAnchor anchor, long startNanos, long nanos) {
        // The most numbers that the event's form has room for.
        return new LoadPhase(warmup, startNanos, startNanos + nanos, 1_000_000_000_000L, anchor);
    }
}
