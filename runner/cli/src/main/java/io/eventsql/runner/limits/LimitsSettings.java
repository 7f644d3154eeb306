package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.eventsql.Storage;
import java.time.Duration;
import java.util.List;

/**
 * The settings of a limits run.
 *
 * @param benchmarks the benchmarks to run, at least one
 * @param storage how the library's streams keep their events in {@code append}, {@code read}, {@code snapshot}, {@code
 *     compaction}, {@code cost}, {@code fanout} and {@code tail}; COPY always writes rows
 * @param rounds the rounds of {@code append}, {@code read} and {@code transactions}
 * @param readEvents the events in the stream to read
 * @param snapshot the settings of {@code snapshot}
 * @param handlers the settings of {@code handlers}
 * @param outbox the settings of {@code outbox}
 * @param largeEvents the events in the large stream
 * @param retention the settings of {@code retention}
 * @param compaction the settings of {@code compaction}
 * @param cost the settings of {@code cost} and {@code fanout}
 * @param tail the settings of {@code tail}
 * @param scheduled the settings of {@code scheduled}, whose rounds and steady rate are those of {@code append} and {@code
 *     snapshot}
 */
public record LimitsSettings(
        @JsonProperty("parts") List<LimitsBenchmark> benchmarks,
        Storage storage,
        Rounds rounds,
        int readEvents,
        Snapshot snapshot,
        Handlers handlers,
        OutboxLoad outbox,
        long largeEvents,
        RetentionLoad retention,
        CompactionLoad compaction,
        CostLoad cost,
        TailLoad tail,
        ScheduledLoad scheduled) {

    /**
     * Rounds in which the compared variants run one after the other.
     *
     * @param count the measured rounds, after a warm-up round
     * @param seconds the duration of each interval of a round
     */
    public record Rounds(int count, double seconds) {

        /** Returns {@link #seconds()} as a duration. */
        public Duration duration() {
            return Duration.ofNanos(Math.round(seconds * 1e9));
        }
    }

    /**
     * A steady publish rate.
     *
     * @param seconds the duration of each measured interval
     * @param eventsPerSecond the rate, one event per call
     * @param warmupSeconds the duration of the warm-up before each interval
     */
    public record Snapshot(int seconds, long eventsPerSecond, int warmupSeconds) {}

    /**
     * Transactional and direct publishing at the same rate.
     *
     * @param seconds the duration of each measured interval
     * @param eventsPerSecond each of the two rates, one event per transaction or call
     * @param warmupSeconds the duration of the warm-up before each interval
     */
    public record OutboxLoad(int seconds, long eventsPerSecond, int warmupSeconds) {}

    /**
     * Publishing while segments expire.
     *
     * @param rounds the rounds; in each, one interval for each kind of reader
     * @param seconds the duration of each interval
     * @param warmupSeconds the duration of the warm-up
     * @param burstRate the events per second of the burst
     * @param burstSeconds the duration of the burst
     */
    public record RetentionLoad(int rounds, int seconds, int warmupSeconds, long burstRate, int burstSeconds) {}

    /** Updates of a few keys, at a number of events per second. */
    public record CompactionLoad(int seconds, long eventsPerSecond) {}

    /**
     * Loads whose costs are counted.
     *
     * @param rounds the measured rounds, after a warm-up round
     * @param seconds the duration of each interval of a round
     * @param warmupSeconds the duration of the warm-up before each of the loads of a round
     */
    public record CostLoad(int rounds, int seconds, int warmupSeconds) {}

    /**
     * Loads at several rates, one after the other.
     *
     * @param seconds the duration of each
     * @param warmupSeconds the duration of the warm-up before each
     */
    public record TailLoad(int seconds, int warmupSeconds) {}

    /**
     * Scheduled events.
     *
     * @param events the number of pending ones
     * @param dueSeconds for how long others are due at a steady rate
     */
    public record ScheduledLoad(long events, int dueSeconds) {}

    /**
     * Consumption with a slow handler.
     *
     * @param events the events handled by key in parallel
     * @param sequentialEvents the events handled sequentially
     * @param keyConcurrency the number of keys handled in parallel
     */
    public record Handlers(int events, int sequentialEvents, int keyConcurrency) {}
}
