package io.eventsql;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A segment with events, and what retention does with it ({@link EventSql#retentionPlan}).
 *
 * @param shard the shard's number
 * @param partition the partition on that shard
 * @param firstOffset the offset of its first event
 * @param endOffset the offset after its last event
 * @param active whether the partition's head is in it. It expires only together with the last event, or after it has ended.
 * @param table the name of its table, in the library's schema
 * @param bytes its size with its index
 * @param lastPublishedAt when its last event was published
 * @param expiresBy the limit by which it expires in the next pass, within about 10 seconds; {@code null}: it stays for now
 * @param expiresAt when its last event reaches the maximum age; {@code null} without one. Another limit may let it expire
 *     earlier.
 */
public record RetainedSegment(
        int shard,
        int partition,
        long firstOffset,
        long endOffset,
        boolean active,
        String table,
        long bytes,
        Instant lastPublishedAt,
        @Nullable Limit expiresBy,
        @Nullable Instant expiresAt) {

    /** A limit of {@link Retention}. */
    public enum Limit {
        /** {@link Retention#maxAge()}. */
        AGE,
        /** {@link Retention#maxBytes()}. */
        BYTES,
        /** {@link Retention#maxEvents()}. */
        EVENTS,
        /** {@link Retention#expireHandled()}. */
        HANDLED
    }
}
