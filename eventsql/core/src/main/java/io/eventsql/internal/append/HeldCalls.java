package io.eventsql.internal.append;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one shard that wait for transactions of the application, which publish for the same keys, and the calls that must
 * follow them. They occupy neither lanes nor threads, so calls with other keys are still appended. Not thread-safe: guarded by
 * {@link PublishQueue}'s lock.
 *
 * <p>Calls with a common key form a group, and so do two groups with a call that has keys of both. The first call of a group is
 * retried from time to time, in a batch of its own, so that the batches of others do not fail with it. When it has ended, the
 * rest of the group goes back to the queue.
 */
final class HeldCalls {
    private static final Comparator<PublishCall> BY_SEQUENCE = Comparator.comparingLong(PublishCall::sequence);

    private final List<Group> groups = new ArrayList<>();

    private static final class Group {
        private final Set<String> keys = new HashSet<>();
        /** In the order of the calls. */
        private final List<PublishCall> calls = new ArrayList<>();
        /** The calls that are being tried; several if groups were joined since. */
        private final Set<PublishCall> tried = new HashSet<>();
        /** Whether the first call is to be tried. */
        private boolean isDue;

        void add(PublishCall call) {
            calls.add(call);
            call.addKeysTo(keys);
        }

        boolean isToBeTried() {
            return isDue && tried.isEmpty();
        }

        void join(Group other) {
            keys.addAll(other.keys);
            calls.addAll(other.calls);
            calls.sort(BY_SEQUENCE);
            tried.addAll(other.tried);
        }
    }

    boolean isEmpty() {
        return groups.isEmpty();
    }

    /** Returns the number of calls that are held and not being tried. */
    int size() {
        int sum = 0;
        for (Group group : groups) {
            sum += group.calls.size();
        }
        return sum;
    }

    /** Holds a call whose key a transaction has. */
    void hold(PublishCall call) {
        if (!holdBehind(call)) {
            Group group = new Group();
            group.add(call);
            groups.add(group);
        }
    }

    /** Holds a call if it has a key of others that are held. */
    boolean holdBehind(PublishCall call) {
        Group group = null;
        for (Iterator<Group> all = groups.iterator(); all.hasNext(); ) {
            Group other = all.next();
            if (call.hasKeyOf(other.keys)) {
                if (group == null) {
                    group = other;
                } else {
                    group.join(other);
                    all.remove();
                }
            }
        }
        if (group == null) {
            return false;
        }
        group.tried.remove(call);
        boolean isLast = group.calls.isEmpty() || group.calls.getLast().sequence() < call.sequence();
        group.add(call);
        if (!isLast) { // it was tried, or given back by its batch
            group.calls.sort(BY_SEQUENCE);
        }
        return true;
    }

    /** Has the first call of each group tried once. */
    void setDue() {
        for (Group group : groups) {
            group.isDue = true;
        }
    }

    /** Returns whether a call that meets a condition is to be tried. */
    boolean hasDue(Predicate<PublishCall> condition) {
        for (Group group : groups) {
            if (group.isToBeTried() && condition.test(group.calls.getFirst())) {
                return true;
            }
        }
        return false;
    }

    /**
     * Removes and returns a call to be tried now; {@code null} if there is none.
     *
     * @param canBeTaken whether the lanes of a call are free
     */
    @Nullable
    PublishCall takeDue(Predicate<PublishCall> canBeTaken) {
        for (Group group : groups) {
            if (group.isToBeTried() && canBeTaken.test(group.calls.getFirst())) {
                group.isDue = false;
                PublishCall first = group.calls.removeFirst();
                group.tried.add(first);
                return first;
            }
        }
        return null;
    }

    /** Returns the calls that need not wait any more, because a call that was tried is not held again. */
    List<PublishCall> endTry(PublishCall call) {
        for (Group group : groups) {
            if (group.tried.remove(call) && group.tried.isEmpty()) {
                groups.remove(group);
                return group.calls;
            }
        }
        return List.of();
    }

    /** Removes and returns all calls, of which none is being tried. */
    List<PublishCall> removeAll() {
        List<PublishCall> all = new ArrayList<>();
        groups.forEach(group -> all.addAll(group.calls));
        groups.clear();
        return all;
    }

    /** Removes the calls whose deadline has passed. */
    void removeExpired(long nowNanos, Consumer<PublishCall> expired) {
        for (Iterator<Group> all = groups.iterator(); all.hasNext(); ) {
            Group group = all.next();
            group.calls.removeIf(call -> {
                boolean isExpired = call.deadlineNanos() - nowNanos <= 0;
                if (isExpired) {
                    expired.accept(call);
                }
                return isExpired;
            });
            if (group.calls.isEmpty() && group.tried.isEmpty()) {
                all.remove();
            }
        }
    }
}
