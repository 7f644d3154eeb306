package io.eventsql.reader;

import java.util.List;

/**
 * A page to be read.
 *
 * @param partition the partition
 * @param position where the page begins
 * @param endOffset no event at this offset or above it is returned; {@link #UNBOUNDED} for no limit
 */
public record PageRequest(StreamPartition partition, ReadPosition position, long endOffset) {
    /** No end: reading follows the head. */
    public static final long UNBOUNDED = Long.MAX_VALUE;

    /** Creates a request without an end. */
    public PageRequest(StreamPartition partition, ReadPosition position) {
        this(partition, position, UNBOUNDED);
    }

    /** Returns the page of this request if there is nothing to read. */
    PartitionPage emptyPage() {
        return new PartitionPage(partition, List.of(), position, true);
    }
}
