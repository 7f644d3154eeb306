package io.eventsql.runner.trials;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import java.util.OptionalInt;

/**
 * Trials that store several numbers of events in calls of a fixed size.
 *
 * @param eventCounts the numbers of events, 1 to 1,000,000,000, each with its own series of trials
 * @param trials the measured trials per number of events, 1 to 10,000
 * @param buffer the size of calls and whether they wait
 * @param eventBytes the exact size of a value; empty for the {@code account_created} event
 * @param cluster the measured databases, for the results only
 */
public record SweepSettings(
        List<Integer> eventCounts, int trials, Buffer buffer, OptionalInt eventBytes, Cluster cluster) {
    private static final int EVENTS_MAX = 1_000_000_000;
    private static final int TRIALS_MAX = 10_000;
    private static final int EVENT_BYTES_MAX = 4 << 20;

    /** @throws IllegalArgumentException if a value is out of range; the message names it and the limit */
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
     * The size of calls and whether they wait.
     *
     * @param bytes the maximum bytes of values per call, 1 to 64 MiB; a larger event is sent alone
     * @param waiting whether each call waits until its events are stored; otherwise only the end of the trial waits
     */
    public record Buffer(int bytes, boolean waiting) {
        private static final int BYTES_MAX = 64 << 20;

        /** @throws IllegalArgumentException if a value is out of range; the message names it and the limit */
        public Buffer {
            Ranges.require("sweep.buffer_bytes", bytes, 1, BYTES_MAX);
        }

        String type() {
            return waiting ? "waiting" : "non-waiting";
        }
    }

    /**
     * The databases of the trials.
     *
     * @param type the replication mode: {@code none}, {@code asynchronous}, {@code synchronous} or {@code quorum}
     * @param nodes the number of databases
     */
    public record Cluster(String type, int nodes) {}

    /** Returns the type of events: {@code account_created} or {@code bytes-N}. */
    String eventType() {
        return eventBytes.isPresent() ? "bytes-" + eventBytes.getAsInt() : "account_created";
    }
}
