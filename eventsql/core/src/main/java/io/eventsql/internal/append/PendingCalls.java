package io.eventsql.internal.append;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.PartitionMap;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
 *
 * <p>Calls that wait for a transaction of the application, or for their stream, are {@link HeldCalls held}: they and what must follow
 * them are passed over.
 */
final class PendingCalls {
    /** Above this number of waiting events, a second concurrent commit pays off. */
    static final int SHARED_ABOVE_EVENTS = 500;
    /** The same for events that fit any lane: dividing them costs only the additional commit. */
    static final int SHARED_ABOVE_EVENTS_OF_ANY_LANE = 150;

    private final int lanes;
    private final int batchEventsMax;
    private final long batchBytesMax;
    private final CallQueues waiting;
    private final HeldCalls held = new HeldCalls();
    /** The lanes whose last batch was a held call that was retried. */
    private final BitSet retriedLanes = new BitSet();

    private final BitSet busyLanes = new BitSet();
    private final Map<String, Integer> rotation = new HashMap<>();
    /** The map by which the waiting calls of each stream are routed, unless {@link #rerouting}. */
    private final Map<StreamId, PartitionMap> maps = new HashMap<>();
    /** Whether waiting calls are routed by different maps: no batch is formed before {@link #reroute}. */
    private boolean rerouting;
    /** The stream and the map of the call that was added last: most calls have the same, which {@link #maps} has. */
    private @Nullable StreamSpec lastStream;

    private @Nullable PartitionMap lastMap;

    private long lastSequence;
    private long lastBatchNumber;

    PendingCalls(int lanes, int batchEventsMax, long batchBytesMax) {
        this.lanes = lanes;
        this.batchEventsMax = batchEventsMax;
        this.batchBytesMax = batchBytesMax;
        this.waiting = new CallQueues(lanes);
    }

    /** A stream; one that was created anew with other partitions is another one, whose calls fail alone. */
    private record StreamId(String name, int partitions) {}

    void add(PublishCall call) {
        call.setSequence(++lastSequence);
        waiting.add(call);
        if (!call.map().equals(lastMap) || !isSame(call.stream(), lastStream)) {
            addMap(call.stream(), call.map());
        }
    }

    private static boolean isSame(StreamSpec stream, @Nullable StreamSpec last) {
        return last != null && last.name().equals(stream.name()) && last.partitions() == stream.partitions();
    }

    /** Calls of one stream that are routed by different maps are routed anew before they form a batch. */
    private void addMap(StreamSpec stream, PartitionMap map) {
        PartitionMap known = maps.putIfAbsent(new StreamId(stream.name(), stream.partitions()), map);
        rerouting |= known != null && !known.equals(map);
        lastStream = stream;
        lastMap = map;
    }

    /** Adds a call that its batch, which is still in progress, has given back. */
    void takeBack(PublishCall call) {
        rerouting = true;
        waiting.addFirst(call);
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
        List<PublishCall> all = waiting.removeAll();
        held.clear();
        maps.clear();
        lastMap = null;
        rerouting = false;
        for (PublishCall call : all) {
            for (PublishCall staying : route.apply(call)) {
                staying.setSequence(call.sequence());
                waiting.add(staying);
                addMap(staying.stream(), staying.map());
            }
        }
    }

    /**
     * Takes calls back that wait for transactions of the application, which have their keys, or for their streams. They and those that
     * must follow them hold back no others.
     *
     * @param following calls of the same batch that must follow them
     */
    void hold(List<PublishCall> given, List<PublishCall> following) {
        waiting.addInOrder(following);
        waiting.addInOrder(given);
        given.forEach(held::add);
    }

    /** Counts a tick of the timer by which held calls are retried; returns whether some are to be retried now. */
    boolean tick() {
        return held.tick();
    }

    /** Has the waiting calls routed anew before the next batch, because the shard has closed slots. */
    void requireRerouting() {
        rerouting = true;
    }

    /** Returns the number of waiting calls. */
    int calls() {
        return waiting.calls();
    }

    /** Returns whether a thread is blocked until one of the waiting calls is stored. */
    boolean hasWaitingCaller() {
        return waiting.hasWaitingCaller();
    }

    /** Returns whether enough events wait to append several batches concurrently. */
    boolean isWorthSharing() {
        return waiting.events() > SHARED_ABOVE_EVENTS || waiting.eventsOfAnyLane() > SHARED_ABOVE_EVENTS_OF_ANY_LANE;
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
        if (free.isEmpty() || waiting.calls() == 0 || rerouting) {
            return null;
        }
        return held.isEmpty() ? takeWaiting(free) : takeAroundHeld(free);
    }

    private @Nullable Batch takeWaiting(BitSet free) {
        if (free.isEmpty()) {
            return null;
        }
        if (isWorthSharing() && !waiting.hasWide()) {
            int share = Math.ceilDiv(waiting.events(), free.cardinality());
            return new Builder(only(waiting.laneToServe(free)), Math.min(batchEventsMax, share)).build();
        }
        return new Builder(free, batchEventsMax).build();
    }

    /** In each lane a held call is retried in turn with a batch of others, however many are held. */
    private @Nullable Batch takeAroundHeld(BitSet free) {
        Batch retried = retryHeld(free, retriedLanes);
        if (retried != null) {
            return retried;
        }
        List<PublishCall> aside = setHeldAside();
        @Nullable Batch others;
        boolean waitForAllLanes;
        try {
            others = takeWaiting((BitSet) free.clone());
            waitForAllLanes = others == null && waiting.hasWide();
        } finally {
            waiting.addInOrder(aside);
        }
        if (waitForAllLanes) { // a retry would delay the wide call, again and again
            return null;
        }
        retriedLanes.andNot(free);
        return others != null ? others : retryHeld(free, new BitSet());
    }

    /** Removes the calls that are held, and those that must follow them, until others were taken. */
    private List<PublishCall> setHeldAside() {
        return held.isEmpty() ? List.of() : waiting.removeIf(held.orFollowing());
    }

    /**
     * Returns a held call that is to be retried; {@code null} if there is none.
     *
     * @param free the free lanes; those are removed that a held call needs which must wait for other lanes
     * @param notNow the lanes whose other calls come first
     */
    private @Nullable Batch retryHeld(BitSet free, BitSet notNow) {
        BitSet later = (BitSet) notNow.clone();
        for (PublishCall call : held.due()) {
            BitSet needed = lanesOf(call, free);
            BitSet busy = (BitSet) needed.clone();
            busy.andNot(free);
            if (needed.intersects(later)) {
                later.or(needed); // or others would always take a lane of one that needs several
                continue;
            } else if (busy.isEmpty()) {
                // Without keys its events go to the partition that has the number of the lane.
                Map<String, Integer> sticky =
                        call.hasNoKeys() ? Map.of(call.stream().name(), needed.nextSetBit(0)) : Map.of();
                Batch batch = new Batch(List.of(call), sticky, nextBatchNumber(), needed);
                waiting.remove(call);
                held.remove(call);
                retriedLanes.or(needed);
                busyLanes.or(needed);
                return batch;
            }
            free.andNot(needed);
        }
        return null;
    }

    /** @param free the lanes of which a call that fits any lane takes one, if there is one */
    private BitSet lanesOf(PublishCall call, BitSet free) {
        if (call.hasNoKeys()) {
            return only(waiting.isOfAnyLane(call) ? Math.max(0, free.nextSetBit(0)) : 0);
        }
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
        List<PublishCall> aside = setHeldAside();
        @Nullable Batch more;
        try {
            more = new Builder((BitSet) batch.lanes().clone(), batchEventsMax).build();
        } finally {
            waiting.addInOrder(aside);
        }
        if (more != null) {
            more.lanes().clear();
        }
        return more;
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

    /** Takes the calls of a batch back, to their places among those that wait, and frees its lanes. */
    void putBack(Batch batch) {
        done(batch);
        waiting.addInOrder(batch.calls());
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
        /** The partitions of the streams of calls without keys. */
        private final Map<String, Integer> partitions = new HashMap<>();
        /** The stream of the last call without keys, as most calls are of one stream. */
        private @Nullable StreamSpec lastWithoutKeys;

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
                batch.reversed().forEach(waiting::addFirst);
                throw e;
            }
        }

        private void collect() {
            CallQueues.Taker taker = waiting.new Taker(taken);
            for (PublishCall call = taker.peek(); call != null; call = taker.peek()) {
                boolean fits = batch.isEmpty()
                        || (batchEvents + call.events().size() <= eventsMax
                                && batchBytes + call.bytes() <= batchBytesMax);
                if (!fits) {
                    break;
                }
                if (call.hasNoKeys() && !isSame(call.stream(), lastWithoutKeys) && !addSticky(call)) {
                    break;
                }
                batch.add(call);
                taker.remove();
                batchEvents += call.events().size();
                batchBytes += call.bytes();
            }
        }

        /** Chooses the partition of its stream; returns {@code false} if that was created anew and needs another batch. */
        private boolean addSticky(PublishCall call) {
            StreamSpec stream = call.stream();
            Integer before = partitions.putIfAbsent(stream.name(), stream.partitions());
            if (before != null && before != stream.partitions()) {
                return false;
            }
            lastWithoutKeys = stream;
            int ofMap = call.map().partitions();
            sticky.computeIfAbsent(stream.name(), name -> nextPartition(name, ofMap));
            return true;
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
        waiting.removeExpired(nowNanos, call -> {
            held.remove(call);
            expired.accept(call);
        });
    }

    /** Removes the calls without keys. */
    List<PublishCall> removeWithoutKeys() {
        List<PublishCall> removed = waiting.removeWithoutKeys();
        removed.forEach(held::remove);
        return removed;
    }
}
