package io.eventsql;

import java.time.Duration;

/**
 * What compaction has removed from one shard, and what it has still to do. Counted by the database, for all streams and
 * processes.
 *
 * @param shard the shard's number
 * @param removedEvents the number of events removed since the schema was created, with tombstones
 * @param removedTombstones the number of tombstones among them that were the last events of their keys
 * @param returnedBytes the space that was returned to the operating system
 * @param dirtySegments the number of segments that have ended since the last pass over their partition
 * @param dirtyBytes their size
 * @param passAge the time since the pass in progress began; zero if there is none
 */
public record CompactionStatus(
        int shard,
        long removedEvents,
        long removedTombstones,
        long returnedBytes,
        long dirtySegments,
        long dirtyBytes,
        Duration passAge) {}
