package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.time.Duration;
import java.util.List;

/**
 * What is asked of a limits run.
 *
 * @param parts what is measured, at least one
 * @param rounds how what the parts {@code append}, {@code read} and {@code transactions} compare takes turns
 * @param readEvents events in the stream that is read
 * @param snapshot the part {@code snapshot}
 * @param handlers the part {@code handlers}
 * @param outbox the part {@code outbox}
 */
public record LimitsSettings(
        @JsonProperty("parts") List<LimitsBenchmark> benchmarks,
        Rounds rounds,
        int readEvents,
        Snapshot snapshot,
        Handlers handlers,
        OutboxLoad outbox) {

    /**
     * Rounds of everything that is compared, one after the other.
     *
     * @param count measured rounds, after one that is not
     * @param seconds length of each stretch of a round
     */
    public record Rounds(int count, double seconds) {

        /** See {@link #seconds()}. */
        public Duration time() {
            return Duration.ofNanos(Math.round(seconds * 1e9));
        }
    }

    /**
     * Publishing at a steady rate.
     *
     * @param seconds length of each measured interval
     * @param eventsPerSecond the rate, one event a call
     * @param warmupSeconds the same load before each interval, not measured
     */
    public record Snapshot(int seconds, long eventsPerSecond, int warmupSeconds) {}

    /**
     * Publishing inside transactions and, at the same rate, plainly.
     *
     * @param seconds length of each measured interval
     * @param eventsPerSecond each of the two rates, one event a transaction or call
     * @param warmupSeconds the same load before each interval, not measured
     */
    public record OutboxLoad(int seconds, long eventsPerSecond, int warmupSeconds) {}

    /**
     * Handling with a slow handler.
     *
     * @param events events that are handled with several keys at the same time
     * @param sequentialEvents events that are handled one after the other
     * @param keyConcurrency how many keys at the same time
     */
    public record Handlers(int events, int sequentialEvents, int keyConcurrency) {}
}
