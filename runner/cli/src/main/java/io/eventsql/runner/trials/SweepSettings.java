package io.eventsql.runner.trials;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import java.util.OptionalInt;

/**
 * Batches of a size until so many events are stored, for several numbers of events.
 *
 * @param eventCounts the events of a trial, one series of trials for each, each 1 to 1,000,000,000
 * @param trials the measured trials for each number of events, 1 to 10,000
 * @param buffer how events are gathered and sent
 * @param eventBytes the exact size of a value; empty: the {@code account_created} event
 * @param cluster what is measured, for the results only
 */
public record SweepSettings(
        List<Integer> eventCounts, int trials, Buffer buffer, OptionalInt eventBytes, Cluster cluster) {
    private static final int EVENTS_MAX = 1_000_000_000;
    private static final int TRIALS_MAX = 10_000;
    private static final int EVENT_BYTES_MAX = 4 << 20;

    /** @throws IllegalArgumentException if a value is out of its range; names it and the limit */
    public SweepSettings {
        eventCounts = List.copyOf(eventCounts);
        Ranges.require("sweep.event_counts", eventCounts.size(), 1, TRIALS_MAX);
        eventCounts.forEach(events -> Ranges.require("sweep.event_counts", events, 1, EVENTS_MAX));
        Ranges.require("sweep.trials", trials, 1, TRIALS_MAX);
        if (eventBytes.isPresent()) {
            Ranges.require("events.bytes", eventBytes.getAsInt(), BenchmarkEvent.EVENT_BYTES_MIN, EVENT_BYTES_MAX);
        }
    }

    /**
     * How events are gathered and sent.
     *
     * @param bytes of values that go into one call, at most; a single larger event goes alone. 1 to 64 MiB
     * @param waiting whether each call waits until its events are stored; {@code false}: only the last one does
     */
    public record Buffer(int bytes, boolean waiting) {
        private static final int BYTES_MAX = 64 << 20;

        /** @throws IllegalArgumentException if a value is out of its range; names it and the limit */
        public Buffer {
            Ranges.require("sweep.buffer_bytes", bytes, 1, BYTES_MAX);
        }

        String type() {
            return waiting ? "waiting" : "non-waiting";
        }
    }

    /**
     * What the trials run on.
     *
     * @param type the standbys: {@code none}, {@code asynchronous}, {@code synchronous} or {@code quorum}
     * @param nodes the databases that events go to
     */
    public record Cluster(String type, int nodes) {}

    /** The events' form: {@code account_created} or {@code bytes-N}. */
    String eventType() {
        return eventBytes.isPresent() ? "bytes-" + eventBytes.getAsInt() : "account_created";
    }
}
