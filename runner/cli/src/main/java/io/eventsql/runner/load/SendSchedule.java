package io.eventsql.runner.load;

/**
 * The schedule of an open-loop load: slot i at {@code start + i · eventsPerSlot / eventsPerSecond}. Each time is
 * computed from i alone, so that rounding errors do not accumulate.
 *
 * @param startNanos the time of the first slot on the monotonic clock
 * @param eventsPerSecond the rate, 1 to 1,000,000
 * @param eventsPerSlot the events per call, at least 1
 * @param events the total number of events, at most 10^12; the last slot may hold fewer than the others
 */
public record SendSchedule(long startNanos, long eventsPerSecond, int eventsPerSlot, long events) {
    private static final long NANOS_PER_SECOND = 1_000_000_000;

    /** Returns the number of slots. */
    public long slots() {
        return Math.ceilDiv(events, eventsPerSlot);
    }

    /** Returns the number of the slot's first event. */
    public long firstEvent(long slot) {
        return slot * eventsPerSlot;
    }

    /** Returns the number of events in the slot. */
    public int eventsIn(long slot) {
        return (int) Math.min(eventsPerSlot, events - firstEvent(slot));
    }

    /** Returns the intended time of the slot's call on the monotonic clock. */
    public long nanosOf(long slot) {
        long event = firstEvent(slot);
        long seconds = event / eventsPerSecond;
        // Below 10^15, so it cannot overflow.
        long rest = event % eventsPerSecond * NANOS_PER_SECOND / eventsPerSecond;
        return startNanos + seconds * NANOS_PER_SECOND + rest;
    }
}
