package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
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

    /** Returns the number of distinct events whose handlers have ended. */
    synchronized long handledOnce() {
        return handled - duplicates;
    }

    /** Adds the counts and the rate as a row of a table, and what is wrong as problems. Returns the rate in events/s. */
    synchronized double addTo(PartRecorder part, String row, int events) {
        double perSecond = new MeasuredInterval(handled, handled, lastEndedNanos - firstBeganNanos).eventsPerSecond();
        long lost = events - begun.size();
        part.add("handlers", row, "events", Figure.of(events))
                .add("handlers", row, "events_per_second", Figure.of(perSecond, "events/s"))
                .add("handlers", row, "lost", Figure.of(lost))
                .add("handlers", row, "duplicated", Figure.of(duplicates))
                .add("handlers", row, "out_of_order", Figure.of(orderViolations))
                .requireNone(lost, "events were not handled " + row)
                .requireNone(duplicates, "events were handled more than once " + row)
                .requireNone(orderViolations, "events were handled out of order " + row);
        return perSecond;
    }
}
