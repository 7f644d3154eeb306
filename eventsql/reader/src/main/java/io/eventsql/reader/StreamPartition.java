package io.eventsql.reader;

import java.io.Serializable;
import java.util.Comparator;

/**
 * A partition of a stream.
 *
 * @param stream the stream's name
 * @param shard the number of the shard, from 0
 * @param partition the partition on that shard, from 0
 */
public record StreamPartition(String stream, int shard, int partition)
        implements Comparable<StreamPartition>, Serializable {
    private static final Comparator<StreamPartition> ORDER = Comparator.comparing(StreamPartition::stream)
            .thenComparingInt(StreamPartition::shard)
            .thenComparingInt(StreamPartition::partition);

    /** Orders by stream, then by shard, then by partition. */
    @Override
    public int compareTo(StreamPartition other) {
        return ORDER.compare(this, other);
    }

    @Override
    public String toString() {
        return "partition " + partition + " on shard " + shard + " of stream " + stream;
    }
}
