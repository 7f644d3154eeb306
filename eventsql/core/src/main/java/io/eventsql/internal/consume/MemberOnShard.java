package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.Handled;
import io.eventsql.internal.sql.ConsumerTable.Taken;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/**
 * A member's part on one shard: the partitions it holds there. Thread-safe.
 *
 * @param partitions by partition, so that fetches look the same from one to the next
 */
record MemberOnShard(
        ConsumerSpec spec,
        StreamSpec stream,
        Shard shard,
        int streamId,
        int consumerId,
        List<OwnedPartition> partitions,
        Dispatcher dispatcher) {

    static MemberOnShard of(
            ConsumerSpec spec,
            StreamSpec stream,
            Shard shard,
            int streamId,
            int consumerId,
            List<Taken> taken,
            Dispatcher dispatcher) {
        List<OwnedPartition> partitions = taken.stream()
                .sorted(Comparator.comparingInt(Taken::partition))
                .map(t -> new OwnedPartition(t, stream.segmentSize()))
                .toList();
        return new MemberOnShard(spec, stream, shard, streamId, consumerId, partitions, dispatcher);
    }

    boolean wantsPages() {
        return partitions.stream().anyMatch(OwnedPartition::wantsPage);
    }

    List<Handled> toCommit() {
        return partitions.stream()
                .map(OwnedPartition::toCommit)
                .filter(Objects::nonNull)
                .toList();
    }

    OwnedPartition partition(int number) {
        return partitions.stream()
                .filter(p -> p.partition() == number)
                .findFirst()
                .orElseThrow();
    }

    boolean isGivenUp() {
        return partitions.stream().allMatch(OwnedPartition::isGivenUp);
    }
}
