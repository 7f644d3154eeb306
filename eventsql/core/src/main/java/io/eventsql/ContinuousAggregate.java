package io.eventsql;

import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A running member of a continuous aggregate, started by {@link EventSql#startContinuousAggregate}. Each event is counted exactly
 * once, whatever happens to members and databases. Results are read with {@link #windows}, or with SQL from the view on each
 * shard. Thread-safe.
 */
public interface ContinuousAggregate extends AutoCloseable {
    /** The maximum of {@link #windows}. */
    int WINDOWS_MAX = 100_000;

    /**
     * The aggregate of one key and window, over all shards.
     *
     * @param start the window's start, inclusive
     * @param key the key; {@code null} for events without one
     * @param events the number of events
     * @param measures by name
     */
    record Window(Instant start, @Nullable String key, long events, Map<String, Measure> measures) {
        /** Copies the map. */
        public Window {
            measures = Map.copyOf(measures);
        }
    }

    /**
     * The aggregate of one measure. Those of other windows and keys can be added to it.
     *
     * @param count the number of events that have a value
     * @param sum 0 if there is none
     * @param min {@code null} if there is none
     * @param max {@code null} if there is none
     */
    record Measure(
            long count,
            BigDecimal sum,
            @Nullable BigDecimal min,
            @Nullable BigDecimal max) {
        /** Returns the average, rounded to 34 digits; {@code null} if no event has a value. */
        public @Nullable BigDecimal average() {
            return count == 0 ? null : sum.divide(BigDecimal.valueOf(count), MathContext.DECIMAL128);
        }

        /** Returns the aggregate of the events of both. */
        public Measure plus(Measure other) {
            return new Measure(
                    count + other.count,
                    sum.add(other.sum),
                    min == null ? other.min : other.min == null ? min : min.min(other.min),
                    max == null ? other.max : other.max == null ? max : max.max(other.max));
        }
    }

    /**
     * Which events of a partition are aggregated: those from {@code firstOffset} to {@code nextOffset}, exclusive, as far as they
     * existed when they were handled. After retention a rebuilt aggregate begins with the first event that was left.
     *
     * @param shard the shard's number
     * @param partition the partition on that shard
     * @param isServing whether this is what can be read; {@code false} while it is being rebuilt
     * @param firstOffset the offset of the first event that was handled
     * @param firstPublishedAt when that was published
     * @param nextOffset the offset after the last event that was handled
     * @param lastPublishedAt when the last event was published
     */
    record Coverage(
            int shard,
            int partition,
            boolean isServing,
            long firstOffset,
            Instant firstPublishedAt,
            long nextOffset,
            Instant lastPublishedAt) {}

    /** Returns the specification it was started with. */
    ContinuousAggregateSpec spec();

    /** Returns the consumer that counts what is read now, for {@link EventSql#consumer}; a rebuild has one of its own. */
    String consumerName();

    /**
     * Returns windows in the order of their start and key (by code points; first that without a key), united over all shards.
     * Each shard is read in a transaction of its own.
     *
     * @param from the first window starts here or later
     * @param below the last window starts earlier
     * @param max the maximum number of windows, 1 to {@value #WINDOWS_MAX}
     * @throws EventSqlException if a shard is unavailable, or one was added whose database this process was not given
     */
    List<Window> windows(Instant from, Instant below, int max);

    /**
     * Returns windows of one key, as {@link #windows(Instant, Instant, int)} does.
     *
     * @param key {@code null}: events without a key
     */
    List<Window> windows(@Nullable String key, Instant from, Instant below, int max);

    /**
     * Returns which events are aggregated, ordered by shard and partition, the serving generation first; partitions without an event
     * are left out.
     *
     * @throws EventSqlException if a shard is unavailable, or one was added whose database this process was not given
     */
    List<Coverage> coverage();

    /**
     * Begins to rebuild the aggregate from the events that the log still has, on all shards, and returns at once. Readers see
     * the old results, which are kept up to date, until the new ones have caught up. All members share the work, and continue it if this
     * process ends. What retention removes before it is counted anew is left out. Has no effect on a rebuild that has begun.
     *
     * <p>Call it after the declared functions have changed, when all members have the new ones, and after an erasure.
     *
     * @throws InvalidInputException if the pool of a shard is too small for twice the {@link ContinuousAggregateSpec#concurrency()}
     * @throws EventSqlException if one was added whose database this process was not given, before any change; if a shard is
     *     unavailable, and then what has begun is continued
     */
    void rebuild();

    /**
     * Returns whether a shard does not serve the results of the last {@link #rebuild()} yet.
     *
     * @throws EventSqlException if a shard is unavailable, or one was added whose database this process was not given
     */
    boolean isRebuilding();

    /**
     * Closes the member as {@link Subscription#close(Duration)} does. The results remain.
     *
     * @return {@code false} if it was still working at the timeout; nothing is counted twice
     */
    boolean close(Duration timeout);

    /** Closes the member with the timeout {@link Settings#closeTimeout()}. */
    @Override
    void close();
}
