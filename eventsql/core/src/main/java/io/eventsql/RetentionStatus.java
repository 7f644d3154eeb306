package io.eventsql;

/**
 * What retention has removed from one shard, and what it has still to remove. Counted by the database, for all streams and
 * processes.
 *
 * @param shard the shard's number
 * @param expiredSegments the number of segments that have expired since the schema was created
 * @param expiredEvents the number of their events
 * @param expiredBytes their size
 * @param segmentsToTruncate the number of expired segments whose space is not returned yet, because a transaction uses them
 * @param emptyTables the number of tables of expired segments that are not dropped yet, because a transaction has read their
 *     stream by SQL
 */
public record RetentionStatus(
        int shard,
        long expiredSegments,
        long expiredEvents,
        long expiredBytes,
        long segmentsToTruncate,
        long emptyTables) {}
