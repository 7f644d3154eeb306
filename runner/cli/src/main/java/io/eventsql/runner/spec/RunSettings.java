package io.eventsql.runner.spec;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The settings of one runner.
 *
 * @param identity the identity of the runner
 * @param stream the stream and its consumer
 * @param load the load
 * @param events the events
 */
public record RunSettings(Identity identity, Stream stream, Load load, Events events) {

    /**
     * The identity of a runner.
     *
     * @param run the run's id, 8 lower-case hexadecimal characters
     * @param runner this runner's number, from 0
     * @param runners the number of runners of the run
     */
    public record Identity(String run, int runner, int runners) {}

    /**
     * The target stream and its consumer.
     *
     * @param name the name of the stream
     * @param partitions its partitions per shard
     * @param consumer the name of the consumer
     * @param consumeTimeoutSeconds the maximum time to wait for the consumer
     */
    public record Stream(String name, int partitions, String consumer, int consumeTimeoutSeconds) {

        /** Returns {@link #consumeTimeoutSeconds()} as a duration. */
        public Duration consumeTimeout() {
            return Duration.ofSeconds(consumeTimeoutSeconds);
        }
    }

    /**
     * The load of one runner.
     *
     * @param eventsPerSecond the rate; 0 for as fast as possible
     * @param events the measured events
     * @param eventsPerCall the events per publish call
     * @param callers the concurrent callers of a load without a rate
     * @param async whether callers continue without waiting for answers
     * @param warmupSeconds the duration of the warm-up, or the shortest one
     * @param warmupMaxSeconds the longest duration of a warm-up that lasts until the JVMs hardly compile; 0 for one of
     *     exactly {@code warmupSeconds}
     */
    public record Load(
            long eventsPerSecond,
            long events,
            int eventsPerCall,
            int callers,
            boolean async,
            int warmupSeconds,
            int warmupMaxSeconds) {

        /** Returns whether calls follow a schedule. */
        public boolean hasRate() {
            return eventsPerSecond > 0;
        }

        /** Returns whether the warm-up lasts until the JVMs hardly compile. */
        public boolean warmsUpUntilWarm() {
            return warmupMaxSeconds > warmupSeconds;
        }
    }

    /**
     * The events.
     *
     * @param eventBytes the exact size of a value; {@code null} for the {@code account_created} event
     * @param keyed whether they have keys
     * @param keys the number of keys of this runner
     */
    public record Events(@Nullable Integer eventBytes, boolean keyed, int keys) {}
}
