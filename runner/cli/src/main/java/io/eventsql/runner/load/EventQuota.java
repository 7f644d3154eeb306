package io.eventsql.runner.load;

import java.util.concurrent.atomic.AtomicLong;

/** The events that a phase's callers may still send. Thread-safe. */
final class EventQuota {
    private final AtomicLong taken = new AtomicLong();
    private final long events;
    private final int perCall;

    /**
     * @param events how many there are
     * @param perCall how many a call takes; the last one may get fewer
     */
    EventQuota(long events, int perCall) {
        this.events = events;
        this.perCall = perCall;
    }

    /** How many events the next call has; 0: none are left. */
    int take() {
        long left = events - taken.getAndAdd(perCall);
        return Math.clamp(left, 0, perCall);
    }
}
