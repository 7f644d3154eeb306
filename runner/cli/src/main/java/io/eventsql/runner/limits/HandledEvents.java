package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.NumberSet;
import java.util.HashMap;
import java.util.Map;

/** Records which events a handler has handled, and checks their order per key. Thread-safe. */
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

    /** Records that the handler starts with an event. The numbers of a key increase in publish order. */
    synchronized void recordStart(String key, long number, long nowNanos) {
        if (begun.size() == 0) {
            firstBeganNanos = nowNanos;
        }
        KeyState ofKey = keys.computeIfAbsent(key, added -> new KeyState());
        if (!begun.add(number)) {
            duplicates++; // a redelivery is not an order violation
        } else if (ofKey.running > 0 || number < ofKey.highest) {
            orderViolations++;
        }
        ofKey.highest = Math.max(ofKey.highest, number);
        ofKey.running++;
    }

    /** Records that the handler has finished an event of the key. */
    synchronized void recordEnd(String key, long nowNanos) {
        keys.computeIfAbsent(key, added -> new KeyState()).running--;
        handled++;
        lastEndedNanos = nowNanos;
    }

    /** Returns the number of handled events, including duplicates. */
    synchronized long handled() {
        return handled;
    }

    /** Returns whether the given number of distinct events is handled and no handler is running. */
    synchronized boolean isDone(long events) {
        return begun.size() >= events && handled == begun.size() + duplicates;
    }

    /** @param events the number of published events */
    synchronized HandlersResult.HandlerRun result(int keyConcurrency, int events) {
        MeasuredInterval interval = new MeasuredInterval(handled, handled, lastEndedNanos - firstBeganNanos);
        return new HandlersResult.HandlerRun(
                keyConcurrency, events, interval.eventsPerSecond(), events - begun.size(), duplicates, orderViolations);
    }
}
