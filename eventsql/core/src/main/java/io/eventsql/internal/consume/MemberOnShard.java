package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.Handled;
import io.eventsql.internal.sql.ConsumerTable.Taken;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

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
        AtomicInteger turn,
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
        return new MemberOnShard(
                spec, stream, shard, streamId, consumerId, partitions, new AtomicInteger(), dispatcher);
    }

    /** All partitions, each time beginning with another one. */
    Iterable<OwnedPartition> partitionsInTurn() {
        int first = Math.floorMod(turn.getAndIncrement(), Math.max(1, partitions.size()));
        List<OwnedPartition> inTurn = new ArrayList<>(partitions.subList(first, partitions.size()));
        inTurn.addAll(partitions.subList(0, first));
        return inTurn;
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
