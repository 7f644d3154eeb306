package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * A group of calls appended in one transaction. All events of a stream without a key go to one partition, chosen for the
 * batch. Used by one thread.
 */
final class Batch {
    private final List<PublishCall> calls;
    private final Map<String, Integer> stickyPartitions;
    private final BitSet lanes;
    /** The batch that this one was split off; {@code null} if it was not. */
    private final @Nullable Batch whole;

    private final int events;
    private final long bytes;
    private final long firstDeadlineNanos;
    /** By the stream's name. */
    private final Map<String, OfStream> streams = new HashMap<>();

    /** The stream that was looked up last, as most calls of a batch are of one stream. */
    private @Nullable OfStream lastStream;

    /** The incarnation of the database that the ids belong to. */
    private String incarnation = "";

    private long number;
    private boolean streamsForgotten;
    private int timeouts;
    private long firstTimeoutNanos;
    /** Whether calls of the batch, or of a part of it, were given back to the queue. */
    private boolean hasReturnedCalls;
    /** The calls that were not completed when the batch was sent; does not change as long as it may be in doubt. */
    private @Nullable List<PublishCall> sent;

    /**
     * @param stickyPartitions the partition of the calls without keys, by the stream's name
     * @param number increases from batch to batch of this process and shard; makes a retried append idempotent
     * @param lanes the lanes reserved for this batch until it is done
     */
    Batch(List<PublishCall> calls, Map<String, Integer> stickyPartitions, long number, BitSet lanes) {
        this(calls, stickyPartitions, number, lanes, null);
    }

    private Batch(
            List<PublishCall> calls,
            Map<String, Integer> stickyPartitions,
            long number,
            BitSet lanes,
            @Nullable Batch whole) {
        this.whole = whole;
        this.calls = calls;
        int eventSum = 0;
        long byteSum = 0;
        long first = calls.getFirst().deadlineNanos();
        for (PublishCall call : calls) {
            eventSum += call.events().size();
            byteSum += call.bytes();
            if (call.deadlineNanos() - first < 0) {
                first = call.deadlineNanos();
            }
        }
        this.events = eventSum;
        this.bytes = byteSum;
        this.firstDeadlineNanos = first;
        this.stickyPartitions = stickyPartitions;
        this.number = number;
        this.lanes = lanes;
    }

    /** The partitions of one stream. */
    private static final class OfStream {
        private final String name;
        /** The partition of the calls without keys; {@code null} if there are none. */
        private final @Nullable Integer stickyPartition;
        /** The stream's id on the shard; {@code null} if it is not known. */
        private @Nullable Integer id;
        /** The number of partitions of the stream with that id. */
        private int partitions;
        /** The map by which its calls are routed. */
        private @Nullable PartitionMap map;

        private @Nullable PartitionGroup[] groups = {};
        private long[] nextOffsets = {};

        OfStream(String name, @Nullable Integer stickyPartition) {
            this.name = name;
            this.stickyPartition = stickyPartition;
        }

        @Nullable
        PartitionGroup group(int partition) {
            return partition < groups.length ? groups[partition] : null;
        }

        void setGroup(int partition, PartitionGroup group) {
            if (partition >= groups.length) {
                groups = Arrays.copyOf(groups, Math.max(group.stream().partitions(), partition + 1));
            }
            groups[partition] = group;
        }
    }

    private OfStream ofStream(StreamSpec spec) {
        if (lastStream == null || !lastStream.name.equals(spec.name())) {
            lastStream = streams.computeIfAbsent(spec.name(), name -> new OfStream(name, stickyPartitions.get(name)));
        }
        return lastStream;
    }

    List<PublishCall> calls() {
        return calls;
    }

    /** Returns the number of events of all calls. */
    int eventCount() {
        return events;
    }

    /** Returns the number of streams of the events that were sent. */
    int streamCount() {
        return streams.size();
    }

    /** Returns the size of all calls in the buffer. */
    long bytes() {
        return bytes;
    }

    /** Returns the deadline of the call that expires first. */
    long firstDeadlineNanos() {
        return firstDeadlineNanos;
    }

    long number() {
        return number;
    }

    BitSet lanes() {
        return lanes;
    }

    /** Returns a part of the batch with some of its calls; {@link #beginAnew} gives it a number. */
    Batch withCalls(List<PublishCall> some) {
        Batch split = new Batch(some, stickyPartitions, number, lanes, whole == null ? this : whole);
        split.firstTimeoutNanos = firstTimeoutNanos;
        return split;
    }

    /** Returns whether the batch was split off another one. */
    boolean isPart() {
        return whole != null;
    }

    /** Gives the calls, which are not stored, back to the queue. It takes them when the whole batch is released. */
    void returnToQueue(PublishCall.Return reason) {
        calls.forEach(call -> call.returnToQueue(reason));
        (whole == null ? this : whole).hasReturnedCalls = true;
    }

    /** Returns whether calls of the batch, or of a part of it, were given back to the queue. */
    boolean hasReturnedCalls() {
        return hasReturnedCalls;
    }

    /** Records why an attempt failed: the reason given to calls that fail later. */
    void recordFailure(SQLException failure) {
        calls.forEach(call -> call.recordFailure(failure));
    }

    /**
     * Prepares the next attempt of a batch that is not stored, and of which no attempt is in doubt. Calls completed since are
     * excluded from it, so it has a new number.
     */
    void beginAnew(long newNumber) {
        calls.forEach(PublishCall::rolledBack);
        sent = null;
        number = newNumber;
    }

    /** Records that an attempt has timed out. */
    void recordTimeout() {
        timeouts++;
        if (firstTimeoutNanos == 0) {
            firstTimeoutNanos = System.nanoTime();
        }
    }

    int timeouts() {
        return timeouts;
    }

    /** Returns when the batch, or the one it was split off, has first timed out (nano time). */
    long firstTimeoutNanos() {
        return firstTimeoutNanos;
    }

    /**
     * Marks the calls as sent. Calls completed before are excluded from this attempt and its repetitions.
     *
     * @return whether there is anything to send
     */
    boolean beginSending() {
        if (sent == null) {
            List<PublishCall> notCompleted = new ArrayList<>(calls.size());
            for (PublishCall call : calls) {
                if (call.beginSending()) {
                    notCompleted.add(call);
                }
            }
            sent = notCompleted;
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

    /** Returns whether a call that was sent expects a version of its key. */
    boolean expectsVersions() {
        for (PublishCall call : sent()) {
            if (call.expectsVersion()) {
                return true;
            }
        }
        return false;
    }

    boolean isCompleted() {
        for (PublishCall call : calls) {
            if (!call.isCompleted()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the partition of an event. */
    int partition(PublishCall call, int event) {
        return call.hasNoKeys()
                ? Objects.requireNonNull(ofStream(call.stream()).stickyPartition)
                : call.partition(event);
    }

    /** Finds the id of a stream on the batch's shard. */
    @FunctionalInterface
    interface StreamIds {
        int idOf(StreamSpec stream) throws SQLException;
    }

    /**
     * Looks up the ids of the streams, as far as they are not known.
     *
     * @param current the incarnation of the database; ids of another one are forgotten
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if a call was routed to other partitions than another call of its
     *     stream, which was created anew in between; {@link SqlErrors#MAP_VERSION} if two were routed by different maps
     */
    void lookUpStreams(String current, StreamIds ids) throws SQLException {
        if (!current.equals(incarnation)) {
            forgetStreamIds();
            incarnation = current;
        }
        for (PublishCall call : calls) {
            OfStream stream = ofStream(call.stream());
            if (stream.id == null) {
                stream.id = ids.idOf(call.stream());
                stream.partitions = call.stream().partitions();
                stream.map = call.map();
            } else if (stream.partitions != call.stream().partitions()) {
                throw SqlErrors.createdAnew();
            } else if (!call.map().equals(stream.map)) {
                throw new SQLException("the stream has grown since a call was routed", SqlErrors.MAP_VERSION);
            }
        }
    }

    private void forgetStreamIds() {
        streams.values().forEach(stream -> stream.id = null);
    }

    /**
     * Forgets the ids of the streams because the database rejected them.
     *
     * @return {@code false} if they were looked up anew before: that does not help
     */
    boolean forgetStreams() {
        forgetStreamIds();
        boolean first = !streamsForgotten;
        streamsForgotten = true;
        return first;
    }

    /** Groups the events by partition, in the lock order: stream id, then partition; within a partition in call order. */
    List<PartitionGroup> groupByPartition() {
        streams.values().forEach(stream -> stream.groups = new PartitionGroup[0]);
        List<PartitionGroup> groups = new ArrayList<>();
        boolean expectsVersions = expectsVersions();
        for (PublishCall call : sent()) {
            OfStream stream = ofStream(call.stream());
            for (int i = 0; i < call.events().size(); i++) {
                int partition = partition(call, i);
                PartitionGroup group = stream.group(partition);
                if (group == null) {
                    int id = Objects.requireNonNull(stream.id, "lookUpStreams must be called first");
                    group = new PartitionGroup(
                            call.stream(), id, partition, call.map().version());
                    stream.setGroup(partition, group);
                    groups.add(group);
                }
                if (expectsVersions) {
                    group.add(call.events().get(i), call);
                } else {
                    group.add(call.events().get(i));
                }
            }
        }
        groups.sort(null);
        return groups;
    }

    /**
     * Completes the calls with the positions of their events.
     *
     * @param groups what {@link #groupByPartition} has returned last, stored
     * @param conflicts the calls that were not stored, with the version that their key had
     * @param completions gets what completes the futures of asynchronous calls
     */
    void complete(
            Shard shard, List<PartitionGroup> groups, Map<PublishCall, Long> conflicts, List<Runnable> completions) {
        for (PartitionGroup group : groups) {
            OfStream stream = ofStream(group.stream());
            if (stream.nextOffsets.length < stream.groups.length) {
                stream.nextOffsets = new long[stream.groups.length];
            }
            stream.nextOffsets[group.partition()] = group.firstOffset();
        }
        Executor executor = completions::add;
        for (PublishCall call : sent()) {
            Long actualVersion = conflicts.get(call);
            if (actualVersion != null) {
                call.failAsConflict(actualVersion);
                continue;
            }
            long[] next = ofStream(call.stream()).nextOffsets;
            EventPosition[] positions = new EventPosition[call.events().size()];
            for (int i = 0; i < positions.length; i++) {
                int partition = partition(call, i);
                positions[i] = new EventPosition(call.stream().name(), shard.number(), partition, next[partition]++);
            }
            call.complete(positions, executor);
        }
    }
}
