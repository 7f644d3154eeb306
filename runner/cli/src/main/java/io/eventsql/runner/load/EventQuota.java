package io.eventsql.runner.load;

import java.util.concurrent.atomic.AtomicLong;

/** The remaining events of a phase, shared by its callers. Thread-safe. */
final class EventQuota {
    private final AtomicLong taken = new AtomicLong();
    private final long events;
    private final int perCall;

    /**
     * @param events the total number of events
     * @param perCall the events per call; the last call may get fewer
     */
    EventQuota(long events, int perCall) {
        this.events = events;
        this.perCall = perCall;
    }

    /** Takes the events of the next call. Returns their number; 0 if none are left. */
    int take() {
        long left = events - taken.getAndAdd(perCall);
        return Math.clamp(left, 0, perCall);
    }
}
