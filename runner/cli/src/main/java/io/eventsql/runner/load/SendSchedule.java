package io.eventsql.runner.load;

/**
 * When each call of an open-loop load is meant to happen: slot i at {@code start + i · eventsPerSlot / eventsPerSecond}.
 * Each time is computed from i alone, so that rounding (down to a nanosecond) never adds up.
 *
 * @param startNanos the first slot, on the monotonic clock
 * @param eventsPerSecond 1 to 1,000,000
 * @param eventsPerSlot events of one call, at least 1
 * @param events all events, at most 10^12; the last slot may hold fewer than the others
 */
public record SendSchedule(long startNanos, long eventsPerSecond, int eventsPerSlot, long events) {
    private static final long NANOS_PER_SECOND = 1_000_000_000;

    /** The number of slots. */
    public long slots() {
        return Math.ceilDiv(events, eventsPerSlot);
    }

    /** The number of the slot's first event. */
    public long firstEvent(long slot) {
        return slot * eventsPerSlot;
    }

    /** How many events the slot holds. */
    public int eventsIn(long slot) {
        return (int) Math.min(eventsPerSlot, events - firstEvent(slot));
    }

    /** When the slot's call is meant to happen, on the monotonic clock. */
    public long nanosOf(long slot) {
        long event = firstEvent(slot);
        long seconds = event / eventsPerSecond;
        // Below 10^15: fits, whatever the number of the event.
        long rest = event % eventsPerSecond * NANOS_PER_SECOND / eventsPerSecond;
        return startNanos + seconds * NANOS_PER_SECOND + rest;
    }
}
