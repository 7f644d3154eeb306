package io.eventsql.internal.append;

import io.eventsql.StreamSpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The calls that wait for one shard, and which of them may go together. Not thread-safe: guarded by {@link
 * PublishQueue}'s lock.
 *
 * <p>A partition belongs to a <i>lane</i> (its number modulo the lanes), and a lane is in at most one batch under way,
 * so the calls of a partition stay in order. A call without keys goes with any lane; the batch chooses its partition. A
 * call over partitions of several lanes is <i>wide</i>: it goes when every lane is free, behind all calls that came
 * before it and before all that came after it.
 *
 * <p>While little waits, a batch takes all free lanes: one commit serves everybody. While much waits, a batch takes one
 * lane and its share, so that several go at the same time.
 */
final class PendingCalls {
    /** Events that wait beyond which they are worth a second commit at the same time. */
    static final int SHARED_ABOVE_EVENTS = 500;
    /** The same for events that go with any lane: dividing them costs nothing but the commit. */
    static final int SHARED_ABOVE_EVENTS_OF_ANY_LANE = 150;

    /** How often, in calls of {@link #removeExpired}, the whole queues are searched. */
    private static final int LOOK_AT_ALL_EVERY = 10;

    private final int lanes;
    private final int maxBatchEvents;
    private final long maxBatchBytes;
    private final List<Deque<PublishCall>> ofLane = new ArrayList<>();
    private final Deque<PublishCall> ofAnyLane = new ArrayDeque<>();
    private final Deque<PublishCall> wide = new ArrayDeque<>();
    private final BitSet busyLanes = new BitSet();
    private final Map<StreamSpec, Integer> rotation = new HashMap<>();
    private int calls;
    private int events;
    private int eventsOfAnyLane;
    private long lastSequence;
    private long lastBatchNumber;
    private int expiries;

    PendingCalls(int lanes, int maxBatchEvents, long maxBatchBytes) {
        this.lanes = lanes;
        this.maxBatchEvents = maxBatchEvents;
        this.maxBatchBytes = maxBatchBytes;
        for (int lane = 0; lane < lanes; lane++) {
            ofLane.add(new ArrayDeque<>());
        }
    }

    void add(PublishCall call) {
        call.setSequence(++lastSequence);
        calls++;
        count(call, call.events().size());
        queueOf(call).add(call);
    }

    private void count(PublishCall call, int more) {
        events += more;
        if (isOfAnyLane(call)) {
            eventsOfAnyLane += more;
        }
    }

    /** A stream with fewer partitions than lanes has none in some of them: its calls without keys go with lane 0. */
    private boolean isOfAnyLane(PublishCall call) {
        return call.hasNoKeys() && call.stream().partitions() >= lanes;
    }

    private Deque<PublishCall> queueOf(PublishCall call) {
        if (call.hasNoKeys()) {
            return isOfAnyLane(call) ? ofAnyLane : ofLane.getFirst();
        }
        int lane = call.partition(0) % lanes;
        for (int i = 1; i < call.events().size(); i++) {
            if (call.partition(i) % lanes != lane) {
                return wide;
            }
        }
        return ofLane.get(lane);
    }

    /** How many calls wait. */
    int calls() {
        return calls;
    }

    /** Whether so much waits that several batches should go at the same time. */
    boolean isWorthSharing() {
        return events > SHARED_ABOVE_EVENTS || eventsOfAnyLane > SHARED_ABOVE_EVENTS_OF_ANY_LANE;
    }

    boolean hasFreeLane() {
        return busyLanes.cardinality() < lanes;
    }

    /** The calls that may go now; {@code null} if there are none. */
    @Nullable
    Batch nextBatch() {
        BitSet free = new BitSet(lanes);
        free.set(0, lanes);
        free.andNot(busyLanes);
        if (free.isEmpty() || calls == 0) {
            return null;
        }
        if (isWorthSharing() && wide.isEmpty()) {
            int share = Math.ceilDiv(events, free.cardinality());
            return new Builder(only(laneToServe(free)), Math.min(maxBatchEvents, share)).build();
        }
        return new Builder(free, maxBatchEvents).build();
    }

    /** The free lane whose first call has waited longest; any free lane if none has calls of its own. */
    private int laneToServe(BitSet free) {
        int oldest = free.nextSetBit(0);
        for (int lane = oldest; lane >= 0; lane = free.nextSetBit(lane + 1)) {
            PublishCall first = ofLane.get(lane).peek();
            PublishCall oldestFirst = ofLane.get(oldest).peek();
            if (first != null && (oldestFirst == null || first.sequence() < oldestFirst.sequence())) {
                oldest = lane;
            }
        }
        return oldest;
    }

    private static BitSet only(int lane) {
        BitSet lanes = new BitSet();
        lanes.set(lane);
        return lanes;
    }

    /** A number for a batch or a part of one; greater than all before. */
    long nextBatchNumber() {
        return ++lastBatchNumber;
    }

    /** The batch is no longer under way: its lanes are free. */
    void done(Batch batch) {
        busyLanes.andNot(batch.lanes());
    }

    /** Gathers calls in the order in which they came, up to the limits of a batch. */
    private final class Builder {
        private final BitSet taken;
        private final int maxEvents;
        private final List<PublishCall> batch = new ArrayList<>();
        private final Map<StreamSpec, Integer> sticky = new HashMap<>();
        private int batchEvents;
        private long batchBytes;

        Builder(BitSet taken, int maxEvents) {
            this.taken = taken;
            this.maxEvents = maxEvents;
        }

        @Nullable
        Batch build() {
            for (Deque<PublishCall> queue = nextQueue(); queue != null; queue = nextQueue()) {
                PublishCall call = queue.element();
                boolean fits = batch.isEmpty()
                        || (batchEvents + call.events().size() <= maxEvents
                                && batchBytes + call.bytes() <= maxBatchBytes);
                if (!fits) {
                    break;
                }
                removed(queue.remove());
                if (call.hasNoKeys()) {
                    sticky.computeIfAbsent(call.stream(), this::stickyPartition);
                }
                batch.add(call);
                batchEvents += call.events().size();
                batchBytes += call.bytes();
            }
            if (batch.isEmpty()) {
                return null;
            }
            busyLanes.or(taken);
            return new Batch(batch, sticky, nextBatchNumber(), taken);
        }

        /** The queue whose first call is the oldest that may go; {@code null} if none may. */
        private @Nullable Deque<PublishCall> nextQueue() {
            boolean allLanes = taken.cardinality() == lanes;
            PublishCall firstWide = wide.peek();
            long barrier = firstWide == null || allLanes ? Long.MAX_VALUE : firstWide.sequence();
            Deque<PublishCall> oldest = older(null, ofAnyLane, barrier);
            for (int lane = taken.nextSetBit(0); lane >= 0; lane = taken.nextSetBit(lane + 1)) {
                oldest = older(oldest, ofLane.get(lane), barrier);
            }
            return allLanes ? older(oldest, wide, barrier) : oldest;
        }

        private @Nullable Deque<PublishCall> older(
                @Nullable Deque<PublishCall> oldest, Deque<PublishCall> other, long barrier) {
            PublishCall first = other.peek();
            if (first == null || first.sequence() > barrier) {
                return oldest;
            }
            return oldest == null || first.sequence() < oldest.element().sequence() ? other : oldest;
        }

        /** The next of the stream's partitions that belong to the batch's lanes, in turn. */
        private int stickyPartition(StreamSpec stream) {
            int turn = rotation.merge(stream, 1, Integer::sum) - 1;
            for (int i = 0; i < stream.partitions(); i++) {
                int partition = Math.floorMod(turn + i, stream.partitions());
                if (taken.get(partition % lanes)) {
                    return partition;
                }
            }
            throw new IllegalStateException("no partition of " + stream.name() + " in lanes " + taken);
        }
    }

    private void removed(PublishCall call) {
        calls--;
        count(call, -call.events().size());
    }

    /** Takes out the calls whose deadline has passed. */
    void removeExpired(long nowNanos, Consumer<PublishCall> expired) {
        boolean lookAtAll = expiries++ % LOOK_AT_ALL_EVERY == 0;
        ofLane.forEach(queue -> removeExpired(queue, nowNanos, lookAtAll, expired));
        removeExpired(ofAnyLane, nowNanos, lookAtAll, expired);
        removeExpired(wide, nowNanos, lookAtAll, expired);
    }

    /**
     * All calls have the same time to live, so the first in a queue is mostly the first to expire. Not always: one that
     * waited for space, or comes from another shard, is older than its place. All are looked at only now and then.
     */
    private void removeExpired(
            Deque<PublishCall> queue, long nowNanos, boolean lookAtAll, Consumer<PublishCall> expired) {
        for (Iterator<PublishCall> waiting = queue.iterator(); waiting.hasNext(); ) {
            PublishCall call = waiting.next();
            if (call.deadlineNanos() - nowNanos <= 0) {
                waiting.remove();
                removed(call);
                expired.accept(call);
            } else if (!lookAtAll) {
                return;
            }
        }
    }

    /** Takes out the calls without keys. */
    List<PublishCall> removeWithoutKeys() {
        List<PublishCall> withoutKeys = new ArrayList<>(ofAnyLane);
        ofAnyLane.clear();
        Deque<PublishCall> firstLane = ofLane.getFirst();
        firstLane.stream().filter(PublishCall::hasNoKeys).forEach(withoutKeys::add);
        firstLane.removeIf(PublishCall::hasNoKeys);
        withoutKeys.forEach(this::removed);
        return withoutKeys;
    }
}
