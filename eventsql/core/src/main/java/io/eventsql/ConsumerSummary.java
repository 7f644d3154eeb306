package io.eventsql;

import java.time.Duration;

/**
 * State of a consumer on one shard, in sums over its partitions.
 *
 * @param stream the consumer's stream
 * @param consumer the consumer's name
 * @param shard the shard's number
 * @param members the number of living members, also of those without a partition
 * @param partitions the number of partitions
 * @param stoppedPartitions the number of partitions stopped by a failure, until {@link ConsumerControl#resume}
 * @param pausedPartitions the number of paused partitions
 * @param unassignedPartitions the number of other partitions that no living member owns
 * @param lag the number of stored events not yet handled
 * @param behind the age of the oldest event not yet handled, by the database's clock; zero if there is none
 * @param nextOffsets the sum of the offsets of the next events to handle: its increase is what was handled or skipped
 * @param parkedEvents the number of parked events
 * @param deadLetters the number of dead-lettered events that were neither redriven nor dropped; together with {@code
 *     parkedEvents} at most {@value #PARKED_EVENTS_COUNTED_MAX}, which means at least that many
 */
public record ConsumerSummary(
        String stream,
        String consumer,
        int shard,
        int members,
        int partitions,
        int stoppedPartitions,
        int pausedPartitions,
        int unassignedPartitions,
        long lag,
        Duration behind,
        long nextOffsets,
        int parkedEvents,
        int deadLetters) {
    /** The limit of {@link #parkedEvents()} and {@link #deadLetters()} together: further ones are not counted. */
    public static final int PARKED_EVENTS_COUNTED_MAX = 10_000;

    /** The largest number of consumers on a shard that {@link EventSql#consumers} returns. */
    public static final int CONSUMERS_MAX = 10_000;
}
