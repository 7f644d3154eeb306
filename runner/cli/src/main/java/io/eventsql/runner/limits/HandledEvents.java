package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.NumberSet;
import java.util.HashMap;
import java.util.Map;

/** What a handler of single events has handled, and in which order for each key. Thread-safe. */
final class HandledEvents {

    private static final class KeyState {
        private long highest = -1;
        private int running;
    }

    private final Map<String, KeyState> keys = new HashMap<>();
    private final NumberSet begun = new NumberSet();
    private long handled;
    private long duplicates;
    private long orderViolations;
    private long firstBeganNanos;
    private long lastEndedNanos;

    /** The handler begins with an event; the numbers of a key rise as they were published. */
    synchronized void recordStart(String key, long number, long nowNanos) {
        if (begun.size() == 0) {
            firstBeganNanos = nowNanos;
        }
        KeyState ofKey = keys.computeIfAbsent(key, added -> new KeyState());
        if (!begun.add(number)) {
            duplicates++; // comes late by right
        } else if (ofKey.running > 0 || number < ofKey.highest) {
            orderViolations++;
        }
        ofKey.highest = Math.max(ofKey.highest, number);
        ofKey.running++;
    }

    /** The handler has ended with an event of the key. */
    synchronized void recordEnd(String key, long nowNanos) {
        keys.computeIfAbsent(key, added -> new KeyState()).running--;
        handled++;
        lastEndedNanos = nowNanos;
    }

    /** How many events were handled, repeated ones included. */
    synchronized long handled() {
        return handled;
    }

    /** Whether so many different events were handled, and none is being handled. */
    synchronized boolean isDone(long events) {
        return begun.size() >= events && handled == begun.size() + duplicates;
    }

    /** @param events how many there were to handle */
    synchronized HandlersResult.HandlerRun result(int keyConcurrency, int events) {
        MeasuredInterval interval = new MeasuredInterval(handled, handled, lastEndedNanos - firstBeganNanos);
        return new HandlersResult.HandlerRun(
                keyConcurrency, events, interval.eventsPerSecond(), events - begun.size(), duplicates, orderViolations);
    }
}
