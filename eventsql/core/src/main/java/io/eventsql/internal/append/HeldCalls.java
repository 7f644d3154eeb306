package io.eventsql.internal.append;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Which of the waiting calls of a shard were given back by their batches, because a transaction of the application has one of their
 * keys, or because only an unavailable shard may have their stream. They keep their places in the queues. Batches are formed of the
 * calls around them, and of none that must follow one of them, so a transaction delays its own keys only, and a stream its own calls.
 * Each is retried in a batch of its own, which fails alone. Not thread-safe: guarded by {@link PublishQueue}'s lock.
 */
final class HeldCalls {
    /** A call is retried after 1, 2, 4, … ticks of the publisher's timer, and at most so many. */
    private static final int TICKS_MAX = 16;

    private final Map<PublishCall, Held> calls = new HashMap<>();
    private long now;

    /**
     * When a call is retried.
     *
     * @param since the tick at which it was given back
     */
    private record Held(long since, long due) {}

    boolean isEmpty() {
        return calls.isEmpty();
    }

    /** Adds a call that its batch has given back. */
    void add(PublishCall call) {
        int ticks = Math.min(1 << Math.min(call.countHold(), 30), TICKS_MAX);
        calls.put(call, new Held(now, now + ticks));
    }

    /** Removes a call that is retried, or has expired. */
    void remove(PublishCall call) {
        calls.remove(call);
    }

    /** Removes all calls, which are routed anew. */
    void clear() {
        calls.clear();
    }

    /** Counts a tick of the publisher's timer; returns whether a call is to be retried. */
    boolean tick() {
        now++;
        for (Held held : calls.values()) {
            if (held.due() <= now) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns a condition, to be asked for all waiting calls, for those with keys in their order: whether a call is held, or must follow
     * one.
     */
    Predicate<PublishCall> orFollowing() {
        Set<String> keys = new HashSet<>();
        return call -> {
            boolean waits = calls.containsKey(call) || call.hasKeyOf(keys);
            if (waits) {
                call.addKeysTo(keys);
            }
            return waits;
        };
    }

    /**
     * Returns the calls that are to be retried and need not follow others, the one first that has waited longest for it. No earlier call
     * with one of their keys waits that is not held: it would have been in the batch that has given them back, or in one before.
     */
    List<PublishCall> due() {
        List<Map.Entry<PublishCall, Held>> ordered = new ArrayList<>(calls.entrySet());
        ordered.sort(Comparator.comparingLong(entry -> entry.getKey().sequence()));
        Set<String> keys = new HashSet<>();
        List<Map.Entry<PublishCall, Held>> due = new ArrayList<>();
        for (Map.Entry<PublishCall, Held> entry : ordered) {
            if (!entry.getKey().hasKeyOf(keys) && entry.getValue().due() <= now) {
                due.add(entry);
            }
            entry.getKey().addKeysTo(keys);
        }
        due.sort(Comparator.comparingLong(entry -> entry.getValue().since()));
        return due.stream().map(Map.Entry::getKey).toList();
    }
}
