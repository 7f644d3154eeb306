package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Calls that are appended in one transaction. Events without a key all go to the batch's one partition of their stream.
 * Used by one thread.
 */
final class Batch {
    private final List<PublishCall> calls;
    private final Map<StreamSpec, Integer> stickyPartitions;
    private final long number;
    private final BitSet lanes;
    /** The calls that were not completed when it was first sent; never changes from then on. */
    private @Nullable List<PublishCall> sent;

    /**
     * @param stickyPartitions for each stream that has calls without keys the partition these go to
     * @param number rises from batch to batch of this process and shard: makes a repeated append harmless
     * @param lanes the lanes that no other batch may use meanwhile
     */
    Batch(List<PublishCall> calls, Map<StreamSpec, Integer> stickyPartitions, long number, BitSet lanes) {
        this.calls = calls;
        this.stickyPartitions = stickyPartitions;
        this.number = number;
        this.lanes = lanes;
    }

    List<PublishCall> calls() {
        return calls;
    }

    long number() {
        return number;
    }

    BitSet lanes() {
        return lanes;
    }

    /** A batch with a part of the calls, under a number of its own. */
    Batch part(int from, int to, long partNumber) {
        return new Batch(calls.subList(from, to), stickyPartitions, partNumber, lanes);
    }

    /**
     * Says that it is about to be sent. Calls whose deadline has passed before the first time stay out for ever.
     *
     * @return whether there is anything to send
     */
    boolean beginSending() {
        if (sent == null) {
            sent = calls.stream().filter(PublishCall::beginSending).toList();
        }
        return !sent.isEmpty();
    }

    int sentCalls() {
        return sent().size();
    }

    long sentBytes() {
        long bytes = 0;
        for (PublishCall call : sent()) {
            bytes += call.bytes();
        }
        return bytes;
    }

    private List<PublishCall> sent() {
        return Objects.requireNonNull(sent, "beginSending comes first");
    }

    boolean isCompleted() {
        return calls.stream().allMatch(PublishCall::isCompleted);
    }

    /** Where an event of a call goes. */
    int partition(PublishCall call, int event) {
        return call.hasNoKeys() ? Objects.requireNonNull(stickyPartitions.get(call.stream())) : call.partition(event);
    }

    /** The events by partition, in the lock order: stream id, then partition; within a partition in call order. */
    List<PartitionGroup> groups(Shard shard) throws SQLException {
        Map<StreamSpec, @Nullable PartitionGroup[]> byStream = new HashMap<>();
        List<PartitionGroup> groups = new ArrayList<>();
        for (PublishCall call : sent()) {
            @Nullable
            PartitionGroup[] ofStream =
                    byStream.computeIfAbsent(call.stream(), stream -> new PartitionGroup[stream.partitions()]);
            for (int i = 0; i < call.events().size(); i++) {
                int partition = partition(call, i);
                PartitionGroup group = ofStream[partition];
                if (group == null) {
                    group = new PartitionGroup(call.stream(), shard.ensureStream(call.stream()), partition);
                    ofStream[partition] = group;
                    groups.add(group);
                }
                group.events.add(call.events().get(i));
            }
        }
        groups.sort(null);
        return groups;
    }

    /** Tells every call where its events are stored. */
    void stored(Shard shard, List<PartitionGroup> groups) {
        Map<StreamSpec, long[]> nextOffsets = new HashMap<>();
        for (PartitionGroup group : groups) {
            nextOffsets.computeIfAbsent(group.stream, stream -> new long[stream.partitions()])[group.partition] =
                    group.base;
        }
        for (PublishCall call : sent()) {
            long[] next = Objects.requireNonNull(nextOffsets.get(call.stream()));
            EventPosition[] positions = new EventPosition[call.events().size()];
            Arrays.setAll(positions, i -> {
                int partition = partition(call, i);
                return new EventPosition(call.stream().name(), shard.number(), partition, next[partition]++);
            });
            call.stored(positions);
        }
    }
}
