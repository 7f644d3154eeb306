package io.eventsql.runner.workload;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * All that one runner is asked to do.
 *
 * @param identity which runner of which run it is
 * @param stream where it publishes and who consumes
 * @param load how much, how fast and by whom
 * @param events what the events are
 */
public record RunSettings(Identity identity, Stream stream, Load load, Events events) {

    /**
     * Which runner this is.
     *
     * @param run the run's id, 8 lower-case hexadecimal characters
     * @param runner this runner's number, from 0
     * @param runners how many runners the run has
     */
    public record Identity(String run, int runner, int runners) {}

    /**
     * Where the events go.
     *
     * @param name the stream
     * @param partitions its partitions on each shard
     * @param consumer who consumes
     * @param consumeTimeoutSeconds how long its work is waited for
     */
    public record Stream(String name, int partitions, String consumer, int consumeTimeoutSeconds) {

        /** See {@link #consumeTimeoutSeconds()}. */
        public Duration consumeTimeout() {
            return Duration.ofSeconds(consumeTimeoutSeconds);
        }
    }

    /**
     * The load of one runner.
     *
     * @param eventsPerSecond 0: as fast as possible
     * @param events how many events are measured
     * @param eventsPerCall events of one publish call
     * @param callers concurrent callers, where it goes as fast as possible
     * @param async whether those callers do not wait for answers
     * @param warmupSeconds how long the same load runs before
     */
    public record Load(
            long eventsPerSecond, long events, int eventsPerCall, int callers, boolean async, int warmupSeconds) {

        /** Whether calls follow a schedule. */
        public boolean hasRate() {
            return eventsPerSecond > 0;
        }
    }

    /**
     * The events.
     *
     * @param eventBytes the exact size of a value; {@code null}: the {@code account_created} event
     * @param keyed whether they have keys
     * @param keys how many keys this runner has
     */
    public record Events(@Nullable Integer eventBytes, boolean keyed, int keys) {}
}
