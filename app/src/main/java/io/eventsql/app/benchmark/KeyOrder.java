package io.eventsql.app.benchmark;

import java.util.HashMap;
import java.util.Map;

/** Tracks the highest number of each key. Memory grows with the number of keys. Not thread-safe. */
final class KeyOrder {
    private final Map<String, Highest> highestOfKeys = new HashMap<>();

    /** Records a number. Returns whether it is higher than all earlier ones of its key. */
    boolean record(String key, long number) {
        Highest highest = highestOfKeys.get(key);
        if (highest == null) {
            highestOfKeys.put(key, new Highest(number));
            return true;
        }
        return highest.raiseTo(number);
    }

    /** Mutable, to avoid allocations per event. */
    private static final class Highest {
        private long number;

        Highest(long number) {
            this.number = number;
        }

        boolean raiseTo(long next) {
            if (next <= number) {
                return false;
            }
            number = next;
            return true;
        }
    }
}
