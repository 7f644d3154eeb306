package io.eventsql.flink;

import io.eventsql.reader.PageRequest;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import org.apache.flink.api.connector.source.SourceSplit;

/**
 * A partition on a shard and how far it was read.
 *
 * @param partition the partition
 * @param position where to continue
 * @param endOffset the offset after the last event to be read; {@link PageRequest#UNBOUNDED} if there is no end
 */
public record PartitionSplit(StreamPartition partition, ReadPosition position, long endOffset) implements SourceSplit {
    @Override
    public String splitId() {
        return partition.stream() + "-" + partition.shard() + "-" + partition.partition();
    }

    boolean isFinished() {
        return position.offset() >= endOffset;
    }
}
