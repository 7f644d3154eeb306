package io.eventsql.runner.load;

import java.util.concurrent.atomic.AtomicLong;

/** Deals the running numbers of a phase out to its callers, each number once and rising for each caller. Thread-safe. */
final class EventNumbers {
    /** No number is left. */
    static final long NONE = -1;

    private final AtomicLong next = new AtomicLong();
    private final long end;
    private final int perCall;

    /**
     * @param events how many numbers there are
     * @param perCall how many a call takes; the last one may get fewer
     */
    EventNumbers(long events, int perCall) {
        this.end = events;
        this.perCall = perCall;
    }

    /** The first number of a call, or {@link #NONE}. */
    long claim() {
        long first = next.getAndAdd(perCall);
        return first < end ? first : NONE;
    }

    /** How many numbers the call that claimed {@code first} has. */
    int count(long first) {
        return (int) Math.min(perCall, end - first);
    }
}
