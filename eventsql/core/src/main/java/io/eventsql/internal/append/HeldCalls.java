package io.eventsql.internal.append;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/**
 * The calls of one shard that wait for transactions of the application, which publish for the same keys, and the calls that must
 * follow them. They occupy neither lanes nor threads, so calls with other keys are still appended. Not thread-safe: guarded by
 * {@link PublishQueue}'s lock.
 *
 * <p>Calls with a common key form a group, and so do two groups with a call that has keys of both. The first call of a group is
 * retried from time to time, in a batch of its own, so that the batches of others do not fail with it. When it has ended, the
 * rest of the group goes back to the queue.
 *
 * <p>Invariant: the first call of a group has been in a batch, so no earlier call with one of its keys waits in the queue. That is
 * not certain of those behind it, which may have other keys, too: they are never retried before they were in the queue.
 */
final class HeldCalls {
    private static final Comparator<PublishCall> BY_SEQUENCE = Comparator.comparingLong(PublishCall::sequence);
    /** A call is retried after 1, 2, 4, … ticks of the publisher's timer, and at most so many. */
    private static final int TICKS_MAX = 16;

    /** In the order in which they are retried. */
    private final List<Group> groups = new ArrayList<>();

    private final Map<String, Group> byKey = new HashMap<>();
    /** The groups of the calls that are being retried. */
    private final Map<PublishCall, Group> ofTried = new HashMap<>();

    private static final class Group {
        private final Set<String> keys = new HashSet<>();
        /** In the order of the calls. */
        private final List<PublishCall> calls = new ArrayList<>();
        /** The number of calls that are being retried; several if groups were joined since. */
        private int tried;

        private int attempts;
        private int ticksLeft = 1;

        boolean isDue() {
            return ticksLeft <= 0 && tried == 0;
        }
    }

    boolean isEmpty() {
        return groups.isEmpty();
    }

    /** Returns the number of calls that are held and not being retried. */
    int size() {
        int sum = 0;
        for (Group group : groups) {
            sum += group.calls.size();
        }
        return sum;
    }

    /**
     * Holds a call that its batch has given back.
     *
     * @return {@code false} if it was held before, and so were all that must follow it
     */
    boolean hold(PublishCall call) {
        Group group = ofTried.remove(call);
        if (group != null) {
            group.tried--;
            group.attempts++;
            group.ticksLeft = Math.min(1 << Math.min(group.attempts, 30), TICKS_MAX);
            insert(call, group);
            return false;
        }
        if (!holdBehind(call)) {
            group = new Group();
            groups.add(group);
            insert(call, group);
        }
        return true;
    }

    /** Holds a call if it has a key of others that are held. */
    boolean holdBehind(PublishCall call) {
        Set<String> keys = new HashSet<>();
        call.addKeysTo(keys);
        Group group = null;
        for (String key : keys) {
            Group other = byKey.get(key);
            if (group == null) {
                group = other;
            } else if (other != null && other != group) {
                join(group, other);
            }
        }
        if (group == null) {
            return false;
        }
        insert(call, group);
        return true;
    }

    private void insert(PublishCall call, Group group) {
        boolean isLast = group.calls.isEmpty() || group.calls.getLast().sequence() < call.sequence();
        group.calls.add(call);
        if (!isLast) { // it was retried, or given back by its batch
            group.calls.sort(BY_SEQUENCE);
        }
        Set<String> keys = new HashSet<>();
        call.addKeysTo(keys);
        group.keys.addAll(keys);
        keys.forEach(key -> byKey.put(key, group));
    }

    private void join(Group group, Group other) {
        group.calls.addAll(other.calls);
        group.calls.sort(BY_SEQUENCE);
        group.keys.addAll(other.keys);
        other.keys.forEach(key -> byKey.put(key, group));
        group.tried += other.tried;
        ofTried.replaceAll((call, of) -> of == other ? group : of);
        groups.remove(other);
    }

    private List<PublishCall> dissolve(Group group) {
        groups.remove(group);
        group.keys.forEach(byKey::remove);
        return group.calls;
    }

    /** Counts a tick of the timer by which calls are retried; returns whether some are to be retried now. */
    boolean tick() {
        groups.forEach(group -> group.ticksLeft--);
        return hasDue();
    }

    /** Returns the first calls of the groups that are to be retried, the one first that has waited longest for that. */
    List<PublishCall> due() {
        List<PublishCall> due = new ArrayList<>();
        for (Group group : groups) {
            if (group.isDue()) {
                due.add(group.calls.getFirst());
            }
        }
        return due;
    }

    boolean hasDue() {
        for (Group group : groups) {
            if (group.isDue()) {
                return true;
            }
        }
        return false;
    }

    /** Removes a call, which is due, to be retried now. Its group is then the last one to be retried again. */
    void beginTry(PublishCall call) {
        Set<String> keys = new HashSet<>();
        call.addKeysTo(keys);
        Group group = Objects.requireNonNull(byKey.get(keys.iterator().next()));
        ofTried.put(call, group);
        group.calls.removeFirst();
        group.tried++;
        groups.remove(group);
        groups.add(group);
    }

    /** Returns the calls that go back to the queue, because a call that was retried is not held again. */
    List<PublishCall> endTry(PublishCall call) {
        Group group = ofTried.remove(call);
        return group != null && --group.tried == 0 ? dissolve(group) : List.of();
    }

    /** Removes and returns all calls, of which none is being retried. */
    List<PublishCall> removeAll() {
        List<PublishCall> all = new ArrayList<>();
        groups.forEach(group -> all.addAll(group.calls));
        groups.clear();
        byKey.clear();
        return all;
    }

    /**
     * Removes the calls whose deadline has passed.
     *
     * @return the calls that go back to the queue, because they have lost the first call of their group
     */
    List<PublishCall> removeExpired(long nowNanos, Consumer<PublishCall> expired) {
        List<PublishCall> freed = new ArrayList<>();
        for (Group group : List.copyOf(groups)) {
            PublishCall first = group.calls.isEmpty() ? null : group.calls.getFirst();
            for (Iterator<PublishCall> calls = group.calls.iterator(); calls.hasNext(); ) {
                PublishCall call = calls.next();
                if (call.deadlineNanos() - nowNanos <= 0) {
                    calls.remove();
                    expired.accept(call);
                }
            }
            boolean hasFirst = !group.calls.isEmpty() && group.calls.getFirst() == first;
            if (group.tried == 0 && !hasFirst) {
                freed.addAll(dissolve(group));
            }
        }
        return freed;
    }
}
