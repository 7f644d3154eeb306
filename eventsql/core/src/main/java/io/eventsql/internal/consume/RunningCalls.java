package io.eventsql.internal.consume;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The threads that may be in a call of a partition's handler, and the duration of their calls. Thread-safe. */
final class RunningCalls {
    private final Set<HandlerClock> clocks = ConcurrentHashMap.newKeySet();

    void add(HandlerClock clock) {
        clocks.add(clock);
    }

    void remove(HandlerClock clock) {
        clocks.remove(clock);
    }

    /** Returns the duration of the call that has been running longest, in nanoseconds; 0 if none is. */
    long longestNanos() {
        return clocks.stream().mapToLong(HandlerClock::runningNanos).max().orElse(0);
    }
}
