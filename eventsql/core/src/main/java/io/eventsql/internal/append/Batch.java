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
 * A group of calls appended in one transaction. All events of a stream without a key go to one partition, chosen for the
 * batch. Used by one thread.
 */
final class Batch {
    private final List<PublishCall> calls;
    private final Map<StreamSpec, Integer> stickyPartitions;
    private final long number;
    private final BitSet lanes;
    /** The calls that were not completed when the batch was first sent; does not change afterwards. */
    private @Nullable List<PublishCall> sent;

    /**
     * @param stickyPartitions the partition of the calls without keys, by stream
     * @param number increases from batch to batch of this process and shard; makes a retried append idempotent
     * @param lanes the lanes reserved for this batch until it is done
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

    /** Returns a batch with some of the calls and a number of its own. */
    Batch split(int from, int to, long splitNumber) {
        return new Batch(calls.subList(from, to), stickyPartitions, splitNumber, lanes);
    }

    /**
     * Marks the calls as sent. Calls completed before the first attempt are excluded from this and later attempts.
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
        return Objects.requireNonNull(sent, "beginSending must be called first");
    }

    boolean isCompleted() {
        return calls.stream().allMatch(PublishCall::isCompleted);
    }

    /** Returns the partition of an event. */
    int partition(PublishCall call, int event) {
        return call.hasNoKeys() ? Objects.requireNonNull(stickyPartitions.get(call.stream())) : call.partition(event);
    }

    /** Groups the events by partition, in the lock order: stream id, then partition; within a partition in call order. */
    List<PartitionGroup> groupByPartition(Shard shard) throws SQLException {
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
                group.add(call.events().get(i));
            }
        }
        groups.sort(null);
        return groups;
    }

    /** Completes the calls with the positions of their events. */
    void complete(Shard shard, List<PartitionGroup> groups) {
        Map<StreamSpec, long[]> nextOffsets = new HashMap<>();
        for (PartitionGroup group : groups) {
            nextOffsets.computeIfAbsent(group.stream(), stream -> new long[stream.partitions()])[group.partition()] =
                    group.firstOffset();
        }
        for (PublishCall call : sent()) {
            long[] next = Objects.requireNonNull(nextOffsets.get(call.stream()));
            EventPosition[] positions = new EventPosition[call.events().size()];
            Arrays.setAll(positions, i -> {
                int partition = partition(call, i);
                return new EventPosition(call.stream().name(), shard.number(), partition, next[partition]++);
            });
            call.complete(positions);
        }
    }
}
