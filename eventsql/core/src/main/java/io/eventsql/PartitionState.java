package io.eventsql;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * How a consumer is in one partition.
 *
 * @param shard the shard's number
 * @param partition the partition on that shard
 * @param status whether it is handled
 * @param error why it is stopped; otherwise {@code null}
 * @param logStart the first offset that still exists
 * @param head the offset the next published event will get
 * @param nextOffset the offset the consumer handles next
 * @param behind for how long the event it handles next has been stored, by the database's clock; zero if there is none
 * @param committedAt when the offset was committed last, by the database's clock
 * @param epoch how often the partition was taken or moved
 * @param member the member that holds it, as {@code host/process/number}; {@code null} if nobody does
 * @param leaseUntil when its lease expires; {@code null} if nobody holds it
 * @param parkedKeys how many keys are parked
 * @param parkedEvents how many events are set aside, parked or dead-lettered, at most {@value #SET_ASIDE_COUNTED}: more are
 *     not counted
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
    /** Beyond this, events set aside are not counted. */
    public static final int SET_ASIDE_COUNTED = 10_000;

    /** Whether a partition is handled. */
    public enum Status {
        /** Members handle it. */
        RUNNING,
        /** Paused by {@link ConsumerControl#pause}. */
        PAUSED,
        /** Stopped by a failure. */
        STOPPED
    }

    /** How many stored events the consumer has not handled yet. */
    public long lag() {
        return head - Math.max(nextOffset, logStart);
    }
}
