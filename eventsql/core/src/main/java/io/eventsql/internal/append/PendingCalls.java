package io.eventsql.internal.append;

import io.eventsql.internal.shard.PartitionMap;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The calls waiting to be appended to one shard; forms batches of them. Not thread-safe: guarded by {@link
 * PublishQueue}'s lock.
 *
 * <p>Each partition belongs to a <i>lane</i> (its number modulo the number of lanes), and a lane is used by at most one
 * batch at a time, so the calls of a partition stay in order. A call without keys fits any lane; the batch chooses its
 * partition. A call over partitions of several lanes is <i>wide</i>: it is taken when all lanes are free, after all calls
 * that came before it and before all that came after it.
 *
 * <p>If few events wait, a batch takes all free lanes, so that all calls share one commit. If many wait, a batch takes one
 * lane and its share of the events, so that several batches are appended concurrently.
 */
final class PendingCalls {
    /** Above this number of waiting events, a second concurrent commit pays off. */
    static final int SHARED_ABOVE_EVENTS = 500;
    /** The same for events that fit any lane: dividing them costs only the additional commit. */
    static final int SHARED_ABOVE_EVENTS_OF_ANY_LANE = 150;

    /** One in this number of calls of {@link #removeExpired} searches the queues completely, if they may be out of order. */
    private static final int FULL_SEARCH_EVERY = 10;
    /** Concurrent callers are out of order by less. A call may fail later by that, which is the interval of the timer. */
    private static final long DISORDER_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(20);

    private final int lanes;
    private final int batchEventsMax;
    private final long batchBytesMax;
    private final List<Deque<PublishCall>> ofLane = new ArrayList<>();
    private final Deque<PublishCall> ofAnyLane = new ArrayDeque<>();
    private final Deque<PublishCall> wide = new ArrayDeque<>();
    private final HeldCalls held = new HeldCalls();
    /** The lanes whose last batch was one of a held call: waiting calls come first now, however many are held. */
    private final BitSet triedLanes = new BitSet();

    private final BitSet busyLanes = new BitSet();
    private final Map<String, Integer> rotation = new HashMap<>();
    /** The map by which the waiting calls of each stream are routed, unless {@link #rerouting}. */
    private final Map<String, PartitionMap> maps = new HashMap<>();
    /** Whether waiting calls are routed by different maps: no batch is formed before {@link #reroute}. */
    private boolean rerouting;
    /** The stream and the map of the call that was added last: most calls have the same, which {@link #maps} has. */
    private @Nullable String lastStream;

    private @Nullable PartitionMap lastMap;

    private int calls;
    private int callsOfWaitingCallers;
    private int events;
    private int eventsOfAnyLane;
    private long lastSequence;
    private long lastBatchNumber;
    private int expiries;
    /** The latest deadline of the calls that wait, or waited since the queues were last empty. */
    private long latestDeadlineNanos;
    /** Whether a call came after one with a deadline that is considerably later. */
    private boolean isOutOfOrder;

    PendingCalls(int lanes, int batchEventsMax, long batchBytesMax) {
        this.lanes = lanes;
        this.batchEventsMax = batchEventsMax;
        this.batchBytesMax = batchBytesMax;
        for (int lane = 0; lane < lanes; lane++) {
            ofLane.add(new ArrayDeque<>());
        }
    }

    void add(PublishCall call) {
        call.setSequence(++lastSequence);
        if (held.isEmpty() || !held.holdBehind(call)) {
            countIn(call);
            queueOf(call).add(call);
        }
        if (!call.map().equals(lastMap) || !call.stream().name().equals(lastStream)) {
            addMap(call.stream().name(), call.map());
        }
    }

    /** Calls of one stream that are routed by different maps are routed anew before they form a batch. */
    private void addMap(String stream, PartitionMap map) {
        PartitionMap known = maps.putIfAbsent(stream, map);
        rerouting |= known != null && !known.equals(map);
        lastStream = stream;
        lastMap = map;
    }

    /** Adds a call that its batch, which is still in progress, has given back. */
    void takeBack(PublishCall call) {
        rerouting = true;
        addFirst(call);
    }

    /** Returns whether calls must be rerouted, for which no batch may be in progress. */
    boolean isRerouting() {
        return rerouting;
    }

    /**
     * Routes all waiting calls by the maps that are valid now, in their order. No batch may be in progress: a call of it that comes
     * back would be overtaken by a later one with the same key, which belongs to another lane now.
     *
     * @param route routes a call anew, and returns what of it belongs to this shard
     */
    void reroute(Function<PublishCall, List<PublishCall>> route) {
        List<PublishCall> all = new ArrayList<>(ofAnyLane);
        ofLane.forEach(all::addAll);
        all.addAll(wide);
        List<PublishCall> ofTransactions = held.removeAll();
        ofTransactions.forEach(this::countIn);
        all.addAll(ofTransactions);
        ofAnyLane.clear();
        ofLane.forEach(Deque::clear);
        wide.clear();
        maps.clear();
        lastMap = null;
        all.sort(Comparator.comparingLong(PublishCall::sequence));
        rerouting = false;
        for (PublishCall call : all) {
            countOut(call);
            for (PublishCall staying : route.apply(call)) {
                staying.setSequence(call.sequence());
                countIn(staying);
                queueOf(staying).add(staying);
                addMap(staying.stream().name(), staying.map());
            }
        }
    }

    /**
     * Holds calls that a batch gives back, because transactions of the application have their keys, and those that must follow them,
     * without holding back others. They are retried after {@link #tryHeld}.
     */
    void hold(List<PublishCall> given) {
        boolean isNew = false;
        for (PublishCall call : given) {
            isNew |= held.hold(call);
        }
        if (!isNew) {
            return;
        }
        List<PublishCall> waiting = new ArrayList<>(wide);
        ofLane.forEach(waiting::addAll);
        waiting.sort(Comparator.comparingLong(PublishCall::sequence)); // a call with two keys holds back those of both
        Set<PublishCall> following = new HashSet<>();
        for (PublishCall call : waiting) {
            if (held.holdBehind(call)) {
                countOut(call);
                following.add(call);
            }
        }
        if (!following.isEmpty()) {
            wide.removeIf(following::contains);
            ofLane.forEach(queue -> queue.removeIf(following::contains));
        }
    }

    /** Counts a tick of the timer by which held calls are retried; returns whether some are to be retried now. */
    boolean tryHeld() {
        return held.tick();
    }

    /** Puts what was held behind the calls of a batch, unless they are held again, back to its place. */
    void endTries(Batch batch) {
        if (held.isEmpty()) {
            return;
        }
        for (PublishCall call : batch.calls()) {
            putInOrder(held.endTry(call));
        }
    }

    /** Puts calls that were held to their places in the queue. */
    private void putInOrder(List<PublishCall> freed) {
        Set<Deque<PublishCall>> changed = Collections.newSetFromMap(new IdentityHashMap<>());
        for (PublishCall call : freed) {
            countIn(call);
            queueOf(call).add(call);
            changed.add(queueOf(call));
        }
        for (Deque<PublishCall> queue : changed) {
            List<PublishCall> ordered = new ArrayList<>(queue);
            ordered.sort(Comparator.comparingLong(PublishCall::sequence));
            queue.clear();
            queue.addAll(ordered);
        }
    }

    /** Has the waiting calls routed anew before the next batch, because the shard has closed slots. */
    void requireRerouting() {
        rerouting = true;
    }

    private void countIn(PublishCall call) {
        if (calls == 0) {
            isOutOfOrder = false;
            latestDeadlineNanos = call.deadlineNanos();
        } else if (call.deadlineNanos() - latestDeadlineNanos > 0) {
            latestDeadlineNanos = call.deadlineNanos();
        } else if (latestDeadlineNanos - call.deadlineNanos() > DISORDER_NANOS_MAX) {
            isOutOfOrder = true;
        }
        count(call, 1);
    }

    private void countOut(PublishCall call) {
        count(call, -1);
    }

    private void count(PublishCall call, int sign) {
        calls += sign;
        int more = sign * call.events().size();
        events += more;
        if (isOfAnyLane(call)) {
            eventsOfAnyLane += more;
        }
        if (call.callerWaits()) {
            callsOfWaitingCallers += sign;
        }
    }

    /** A stream with fewer partitions than lanes has no partition in some lanes: its calls without keys use lane 0. */
    private boolean isOfAnyLane(PublishCall call) {
        return call.hasNoKeys() && call.map().partitions() >= lanes;
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

    /** Returns the number of calls that wait to be taken. */
    int calls() {
        return calls;
    }

    /** Returns the number of calls, with those that are held. */
    int allCalls() {
        return calls + held.size();
    }

    boolean isEmpty() {
        return calls == 0 && held.isEmpty();
    }

    /** Returns whether calls wait that a thread may be able to take. */
    boolean hasWork() {
        return calls > 0 || held.hasDue();
    }

    /** Returns whether a thread is blocked until one of the waiting calls is stored. */
    boolean hasWaitingCaller() {
        return callsOfWaitingCallers > 0;
    }

    /** Returns whether enough events wait to append several batches concurrently. */
    boolean isWorthSharing() {
        return events > SHARED_ABOVE_EVENTS || eventsOfAnyLane > SHARED_ABOVE_EVENTS_OF_ANY_LANE;
    }

    boolean hasFreeLane() {
        return busyLanes.cardinality() < lanes;
    }

    /** Removes the calls of the next batch and reserves its lanes; returns {@code null} if no call can be taken now. */
    @Nullable
    Batch takeBatch() {
        BitSet free = new BitSet(lanes);
        free.set(0, lanes);
        free.andNot(busyLanes);
        if (free.isEmpty() || rerouting) {
            return null;
        }
        if (held.isEmpty()) {
            return takeWaiting(free);
        }
        Batch tried = takeHeld(free, calls == 0 ? new BitSet() : triedLanes);
        if (tried != null) {
            return tried;
        }
        Batch taken = takeWaiting(free);
        if (taken != null) {
            triedLanes.andNot(taken.lanes());
        } else if (wide.isEmpty()) { // otherwise the lanes would hardly ever be free for the wide call
            return takeHeld(free, new BitSet());
        }
        return taken;
    }

    private @Nullable Batch takeWaiting(BitSet free) {
        if (free.isEmpty() || calls == 0) {
            return null;
        }
        if (isWorthSharing() && wide.isEmpty()) {
            int share = Math.ceilDiv(events, free.cardinality());
            return new Builder(only(laneToServe(free)), Math.min(batchEventsMax, share)).build();
        }
        return new Builder(free, batchEventsMax).build();
    }

    /**
     * Returns a held call that is to be retried.
     *
     * @param free the free lanes; those are removed that a held call needs which has to wait for other lanes
     * @param notNow lanes whose waiting calls come first
     */
    private @Nullable Batch takeHeld(BitSet free, BitSet notNow) {
        BitSet available = (BitSet) free.clone();
        available.andNot(notNow);
        for (PublishCall call : held.due()) {
            BitSet needed = lanesOf(call);
            BitSet missing = (BitSet) needed.clone();
            missing.andNot(available);
            if (missing.isEmpty()) {
                return retry(call, needed);
            } else if (needed.cardinality() > 1 && !needed.intersects(notNow)) {
                available.andNot(needed);
                free.andNot(needed);
            }
        }
        return null;
    }

    private Batch retry(PublishCall call, BitSet needed) {
        Batch batch = new Batch(List.of(call), Map.of(), nextBatchNumber(), needed);
        held.beginTry(call);
        triedLanes.or(needed);
        busyLanes.or(needed);
        return batch;
    }

    private BitSet lanesOf(PublishCall call) {
        BitSet of = new BitSet(lanes);
        for (int event = 0; event < call.events().size(); event++) {
            of.set(call.partition(event) % lanes);
        }
        return of;
    }

    /**
     * Removes further calls of lanes that a batch has reserved. The returned batch reserves no lane itself; {@code null} if
     * no call waits.
     */
    @Nullable
    Batch takeMore(Batch batch) {
        if (rerouting) {
            return null;
        }
        Batch more = new Builder((BitSet) batch.lanes().clone(), batchEventsMax).build();
        if (more != null) {
            more.lanes().clear();
        }
        return more;
    }

    /** Returns the free lane whose first call has waited longest; any free lane if none has calls of its own. */
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

    /** Returns a new number for a batch; greater than all previous ones. */
    long nextBatchNumber() {
        return ++lastBatchNumber;
    }

    /** Frees the lanes that the batch has reserved but does not use. */
    void releaseUnusedLanes(Batch batch) {
        BitSet used = new BitSet();
        for (PublishCall call : batch.calls()) {
            for (int event = 0; event < call.events().size(); event++) {
                used.set(batch.partition(call, event) % lanes);
            }
        }
        done(batch);
        batch.lanes().and(used);
        busyLanes.or(batch.lanes());
    }

    /** Takes the calls of a batch back, before those that wait, and frees its lanes. */
    void putBack(Batch batch) {
        done(batch);
        batch.calls().reversed().forEach(this::addFirst);
        endTries(batch);
    }

    private void addFirst(PublishCall call) {
        countIn(call);
        queueOf(call).addFirst(call);
    }

    /** Frees the lanes of a batch. */
    void done(Batch batch) {
        busyLanes.andNot(batch.lanes());
    }

    /** Collects calls in the order of their arrival, up to the limits of a batch. */
    private final class Builder {
        private final BitSet taken;
        private final int eventsMax;
        private final List<PublishCall> batch = new ArrayList<>();
        private final Map<String, Integer> sticky = new HashMap<>();
        /** The stream of the last call without keys, as most calls are of one stream. */
        private @Nullable String lastWithoutKeys;
        /** The sequence of the oldest call in another queue than the one returned last. */
        private long oldestElsewhere;

        private int batchEvents;
        private long batchBytes;

        Builder(BitSet taken, int eventsMax) {
            this.taken = taken;
            this.eventsMax = eventsMax;
        }

        @Nullable
        Batch build() {
            try {
                collect();
                if (batch.isEmpty()) {
                    return null;
                }
                Batch built = new Batch(batch, sticky, nextBatchNumber(), taken);
                busyLanes.or(taken);
                return built;
            } catch (Throwable e) { // out of memory: without this the calls would never be completed
                batch.reversed().forEach(PendingCalls.this::addFirst);
                throw e;
            }
        }

        private void collect() {
            for (Deque<PublishCall> queue = nextQueue(); queue != null; queue = nextQueue(queue)) {
                PublishCall call = queue.element();
                boolean fits = batch.isEmpty()
                        || (batchEvents + call.events().size() <= eventsMax
                                && batchBytes + call.bytes() <= batchBytesMax);
                if (!fits) {
                    break;
                }
                String stream = call.stream().name();
                if (call.hasNoKeys() && !stream.equals(lastWithoutKeys)) {
                    lastWithoutKeys = stream;
                    sticky.computeIfAbsent(
                            stream, name -> nextPartition(name, call.map().partitions()));
                }
                batch.add(call);
                countOut(queue.remove());
                batchEvents += call.events().size();
                batchBytes += call.bytes();
            }
        }

        /** Returns what {@link #nextQueue()} does, after a call was taken from {@code queue}. */
        private @Nullable Deque<PublishCall> nextQueue(Deque<PublishCall> queue) {
            PublishCall next = queue.peek();
            return next != null && next.sequence() < oldestElsewhere ? queue : nextQueue();
        }

        /** Returns the queue with the oldest call that can be taken; {@code null} if there is none. */
        private @Nullable Deque<PublishCall> nextQueue() {
            boolean allLanes = taken.cardinality() == lanes;
            PublishCall firstWide = wide.peek();
            long barrier = firstWide == null || allLanes ? Long.MAX_VALUE : firstWide.sequence();
            oldestElsewhere = barrier;
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
            if (oldest == null) {
                return other;
            }
            long sequence = oldest.element().sequence();
            oldestElsewhere = Math.min(oldestElsewhere, Math.max(sequence, first.sequence()));
            return first.sequence() < sequence ? other : oldest;
        }

        /** Returns the stream's partitions that belong to the batch's lanes in turn. */
        private int nextPartition(String stream, int partitions) {
            int turn = rotation.merge(stream, 1, Integer::sum) - 1;
            for (int i = 0; i < partitions; i++) {
                int partition = Math.floorMod(turn + i, partitions);
                if (taken.get(partition % lanes)) {
                    return partition;
                }
            }
            throw new IllegalStateException("no partition of " + stream + " in lanes " + taken);
        }
    }

    /** Removes the calls whose deadline has passed. */
    void removeExpired(long nowNanos, Consumer<PublishCall> expired) {
        boolean searchFully = isOutOfOrder && expiries++ % FULL_SEARCH_EVERY == 0;
        ofLane.forEach(queue -> removeExpired(queue, nowNanos, searchFully, expired));
        removeExpired(ofAnyLane, nowNanos, searchFully, expired);
        removeExpired(wide, nowNanos, searchFully, expired);
        putInOrder(held.removeExpired(nowNanos, expired));
    }

    /**
     * All calls have the same time to live, so the first in a queue usually expires first. A call that waited for space, or
     * was rerouted from another shard, may be older than those before it: that is why full searches are then needed, if only
     * occasionally.
     */
    private void removeExpired(
            Deque<PublishCall> queue, long nowNanos, boolean searchFully, Consumer<PublishCall> expired) {
        for (Iterator<PublishCall> waiting = queue.iterator(); waiting.hasNext(); ) {
            PublishCall call = waiting.next();
            if (call.deadlineNanos() - nowNanos <= 0) {
                waiting.remove();
                countOut(call);
                expired.accept(call);
            } else if (!searchFully) {
                return;
            }
        }
    }

    /** Removes the calls without keys. */
    List<PublishCall> removeWithoutKeys() {
        List<PublishCall> withoutKeys = new ArrayList<>(ofAnyLane);
        ofAnyLane.clear();
        Deque<PublishCall> firstLane = ofLane.getFirst();
        firstLane.stream().filter(PublishCall::hasNoKeys).forEach(withoutKeys::add);
        firstLane.removeIf(PublishCall::hasNoKeys);
        withoutKeys.forEach(this::countOut);
        return withoutKeys;
    }
}
