package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Creates the events of one runner. Thread-safe if each caller uses its own {@link KeyShare}. */
public final class EventSource {
    private final String run;
    private final int runner;
    private final int eventBytes;
    private final List<String> keys;

    /**
     * @param run the run's id, see {@link BenchmarkEvent}
     * @param runner the number of this runner
     * @param eventBytes the exact size of a value; 0 for the {@code account_created} event of about 230 bytes
     * @param keys the keys of this runner; empty for events without keys
     */
    public EventSource(String run, int runner, int eventBytes, List<String> keys) {
        this.run = run;
        this.runner = runner;
        this.eventBytes = eventBytes;
        this.keys = List.copyOf(keys);
    }

    /** Returns one share of the keys per caller. */
    public List<KeyShare> splitKeys(int callers) {
        if (!keys.isEmpty()) {
            return KeyShare.split(keys, callers);
        }
        List<KeyShare> shares = new ArrayList<>();
        for (int caller = 0; caller < callers; caller++) {
            shares.add(KeyShare.withoutKeys());
        }
        return shares;
    }

    /**
     * Creates the events of one publish call.
     *
     * @param share the caller's keys
     * @param warmup whether the events belong to the warm-up
     * @param firstNumber the number of the first event; the others are consecutive
     * @param count the number of events, at least 1
     * @param intendedAtMicros the intended time of the call in epoch microseconds
     */
    public List<Event> createEvents(
            KeyShare share, boolean warmup, long firstNumber, int count, long intendedAtMicros) {
        if (count == 1) {
            return List.of(createEvent(share.nextKey(), warmup, firstNumber, intendedAtMicros));
        }
        List<Event> events = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            events.add(createEvent(share.nextKey(), warmup, firstNumber + i, intendedAtMicros));
        }
        return events;
    }

    private Event createEvent(@Nullable String key, boolean warmup, long number, long intendedAtMicros) {
        BenchmarkEvent event = new BenchmarkEvent(run, runner, warmup, number, intendedAtMicros);
        byte[] value = eventBytes == 0 ? event.encode() : event.encode(eventBytes);
        return new Event(key, value, Map.of());
    }
}
