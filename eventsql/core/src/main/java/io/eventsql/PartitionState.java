package io.eventsql;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * State of a consumer in one partition.
 *
 * @param shard the shard's number
 * @param partition the partition on that shard
 * @param status whether the partition is being handled
 * @param error why the partition is stopped; while it is {@link Status#RUNNING}, why its circuit breaker is open ({@link
 *     ConsumerSpec#circuitBreaker()}), or which partition must be handled first, since the stream has grown ({@link
 *     EventSql#grow}); {@code null} otherwise
 * @param logStart the first offset that still exists
 * @param head the offset of the next event to be published
 * @param nextOffset the offset of the next event to handle
 * @param behind the time since the next event to handle was stored, by the database's clock; zero if there is none
 * @param committedAt when the offset was last committed, by the database's clock
 * @param epoch the number of times the partition was acquired or moved
 * @param member the member it is assigned to, as {@code host/process/number}; {@code null} if it is not assigned
 * @param leaseUntil when the member's lease expires; {@code null} if it is not assigned
 * @param parkedKeys the number of parked keys
 * @param parkedEvents the number of parked and dead-lettered events; {@value #PARKED_EVENTS_COUNTED_MAX} means at least
 *     that many
 */
public record PartitionState(
        int shard,
        int partition,
        Status status,
        @Nullable String error,
        long logStart,
        long head,
        long nextOffset,
        Duration behind,
        Instant committedAt,
        long epoch,
        @Nullable String member,
        @Nullable Instant leaseUntil,
        int parkedKeys,
        int parkedEvents) {
    /** The limit of {@link #parkedEvents()}: further events are not counted. */
    public static final int PARKED_EVENTS_COUNTED_MAX = 10_000;

    /** Whether a partition is being handled. */
    public enum Status {
        /** The consumer's members handle it. */
        RUNNING,
        /** Paused by {@link ConsumerControl#pause}. */
        PAUSED,
        /** Stopped by what {@link PartitionState#error()} says, until {@link ConsumerControl#resume}. */
        STOPPED
    }

    /** Returns the number of stored events not yet handled; 0 if the next offset is beyond the head. */
    public long lag() {
        return Math.max(0, head - Math.max(nextOffset, logStart));
    }
}
