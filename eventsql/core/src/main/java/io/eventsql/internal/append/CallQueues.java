package io.eventsql.internal.append;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one shard that wait to be taken, in the order of their arrival: a queue for each lane, one for calls that fit any
 * lane, and one for wide calls. Not thread-safe: guarded by {@link PublishQueue}'s lock.
 */
final class CallQueues {
    private static final Comparator<PublishCall> BY_SEQUENCE = Comparator.comparingLong(PublishCall::sequence);
    /** One in this number of calls of {@link #removeExpired} searches the queues completely, if they may be out of order. */
    private static final int FULL_SEARCH_EVERY = 10;
    /** Concurrent callers are out of order by less. A call may fail later by that, which is the interval of the timer. */
    private static final long DISORDER_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(20);

    private final int lanes;
    private final List<Deque<PublishCall>> ofLane = new ArrayList<>();
    private final Deque<PublishCall> ofAnyLane = new ArrayDeque<>();
    private final Deque<PublishCall> wide = new ArrayDeque<>();

    private int calls;
    private int callsOfWaitingCallers;
    private int events;
    private int eventsOfAnyLane;
    private int expiries;
    /** The latest deadline of the calls that wait, or waited since the queues were last empty. */
    private long latestDeadlineNanos;
    /** Whether a call came after one with a deadline that is considerably later. */
    private boolean isOutOfOrder;

    CallQueues(int lanes) {
        this.lanes = lanes;
        for (int lane = 0; lane < lanes; lane++) {
            ofLane.add(new ArrayDeque<>());
        }
    }

    /** Adds a call behind all others. */
    void add(PublishCall call) {
        countIn(call);
        queueOf(call).add(call);
    }

    /** Adds a call before all others. */
    void addFirst(PublishCall call) {
        countIn(call);
        queueOf(call).addFirst(call);
    }

    /** Adds calls at the places that their sequences have. */
    void addInOrder(List<PublishCall> some) {
        Set<Deque<PublishCall>> changed = Collections.newSetFromMap(new IdentityHashMap<>());
        for (PublishCall call : some) {
            add(call);
            changed.add(queueOf(call));
        }
        for (Deque<PublishCall> queue : changed) {
            List<PublishCall> ordered = new ArrayList<>(queue);
            ordered.sort(BY_SEQUENCE);
            queue.clear();
            queue.addAll(ordered);
        }
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
    boolean isOfAnyLane(PublishCall call) {
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

    int calls() {
        return calls;
    }

    int events() {
        return events;
    }

    int eventsOfAnyLane() {
        return eventsOfAnyLane;
    }

    /** Returns whether a thread is blocked until one of the calls is stored. */
    boolean hasWaitingCaller() {
        return callsOfWaitingCallers > 0;
    }

    /** Returns whether a call needs all lanes. */
    boolean hasWide() {
        return !wide.isEmpty();
    }

    /** Returns the lane whose first call has waited longest; any of the lanes if none has calls of its own. */
    int laneToServe(BitSet of) {
        int oldest = of.nextSetBit(0);
        for (int lane = oldest; lane >= 0; lane = of.nextSetBit(lane + 1)) {
            PublishCall first = ofLane.get(lane).peek();
            PublishCall oldestFirst = ofLane.get(oldest).peek();
            if (first != null && (oldestFirst == null || first.sequence() < oldestFirst.sequence())) {
                oldest = lane;
            }
        }
        return oldest;
    }

    /** Removes and returns all calls, in their order. */
    List<PublishCall> removeAll() {
        List<PublishCall> all = new ArrayList<>(ofAnyLane);
        all.addAll(allWithKeys());
        all.forEach(this::countOut);
        all.sort(BY_SEQUENCE);
        ofAnyLane.clear();
        ofLane.forEach(Deque::clear);
        wide.clear();
        return all;
    }

    private List<PublishCall> allWithKeys() {
        List<PublishCall> some = new ArrayList<>(wide);
        ofLane.forEach(some::addAll);
        some.sort(BY_SEQUENCE);
        return some;
    }

    /** Removes a call. */
    void remove(PublishCall call) {
        if (queueOf(call).remove(call)) {
            countOut(call);
        }
    }

    /** Removes and returns the calls that meet a condition, which is asked for those with keys in their order. */
    List<PublishCall> removeIf(Predicate<PublishCall> condition) {
        List<PublishCall> removed = allWithKeys();
        removed.addAll(ofAnyLane);
        removed.removeIf(condition.negate());
        if (!removed.isEmpty()) {
            Set<PublishCall> set = new HashSet<>(removed);
            ofAnyLane.removeIf(set::contains);
            wide.removeIf(set::contains);
            ofLane.forEach(queue -> queue.removeIf(set::contains));
            removed.forEach(this::countOut);
        }
        return removed;
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

    /** Removes the calls whose deadline has passed. */
    void removeExpired(long nowNanos, Consumer<PublishCall> expired) {
        boolean searchFully = isOutOfOrder && expiries++ % FULL_SEARCH_EVERY == 0;
        ofLane.forEach(queue -> removeExpired(queue, nowNanos, searchFully, expired));
        removeExpired(ofAnyLane, nowNanos, searchFully, expired);
        removeExpired(wide, nowNanos, searchFully, expired);
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

    /** Removes calls that fit some lanes, in the order of their arrival. */
    final class Taker {
        private final BitSet of;
        /** The queue of the call that was returned last. */
        private @Nullable Deque<PublishCall> queue;
        /** The sequence of the oldest call in another queue. */
        private long oldestElsewhere;

        Taker(BitSet of) {
            this.of = of;
        }

        /** Returns the oldest call that can be taken; {@code null} if there is none. */
        @Nullable
        PublishCall peek() {
            PublishCall next = queue == null ? null : queue.peek();
            if (next != null && next.sequence() < oldestElsewhere) {
                return next;
            }
            queue = oldest();
            return queue == null ? null : queue.element();
        }

        /** Removes the call that {@link #peek} has returned. */
        void remove() {
            countOut(Objects.requireNonNull(queue).remove());
        }

        private @Nullable Deque<PublishCall> oldest() {
            boolean allLanes = of.cardinality() == lanes;
            PublishCall firstWide = wide.peek();
            long barrier = firstWide == null || allLanes ? Long.MAX_VALUE : firstWide.sequence();
            oldestElsewhere = barrier;
            Deque<PublishCall> oldest = older(null, ofAnyLane, barrier);
            for (int lane = of.nextSetBit(0); lane >= 0; lane = of.nextSetBit(lane + 1)) {
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
    }
}
