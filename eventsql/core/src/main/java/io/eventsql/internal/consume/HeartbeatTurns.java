package io.eventsql.internal.consume;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Which members of a process the next heartbeat is for: all of them, unless there are more than {@value #MEMBERS_MAX}. Then their turns
 * are spread over the interval: one statement for a thousand members keeps a processor of the database busy for tens of milliseconds.
 * A turn that was requested or missed comes at once. Not thread-safe.
 *
 * @param <M> a member
 */
final class HeartbeatTurns<M> {
    static final int MEMBERS_MAX = 100;
    /** As many have their turn together where it is not for all. */
    private static final int MEMBERS_OF_TURN = MEMBERS_MAX / 2;

    private final long intervalNanos;
    private final Map<M, Long> dueNanos = new HashMap<>();

    HeartbeatTurns(long intervalNanos) {
        this.intervalNanos = intervalNanos;
    }

    /** Makes it the turn of these members. */
    void request(Collection<M> members, long nowNanos) {
        members.forEach(member -> dueNanos.put(member, nowNanos));
    }

    /** Moves the turn of a member forward, if it is later than after this delay. */
    void requestWithin(M member, long delayNanos, long nowNanos) {
        dueNanos.merge(member, nowNanos + delayNanos, (due, earlier) -> earlier - due < 0 ? earlier : due);
    }

    /** Returns the members whose turn it is, those that have waited for longest first. */
    List<M> next(List<M> members, long nowNanos) {
        members.forEach(member -> dueNanos.putIfAbsent(member, nowNanos));
        if (members.size() <= MEMBERS_MAX) {
            return members;
        }
        return members.stream()
                .filter(member -> due(member) - nowNanos <= 0)
                .sorted((a, b) -> Long.compare(due(a) - nowNanos, due(b) - nowNanos))
                .limit(MEMBERS_MAX)
                .toList();
    }

    /** Records a heartbeat: the next turn of each of these members comes within the interval. */
    void sent(List<M> turn, List<M> members, long sentAt) {
        turn.forEach(member -> dueNanos.put(member, sentAt + intervalNanos));
        if (members.size() > MEMBERS_MAX) {
            spread(new HashSet<>(turn), members, sentAt);
        }
    }

    /** Each has its own time within the interval, so that turns which came at the same time do so no more. */
    private void spread(Set<M> turn, List<M> members, long sentAt) {
        int turns = Math.ceilDiv(members.size(), MEMBERS_OF_TURN);
        for (int i = 0; i < members.size(); i++) {
            if (turn.contains(members.get(i))) {
                long own = intervalNanos / turns * (i % turns);
                dueNanos.put(members.get(i), sentAt + intervalNanos - Math.floorMod(sentAt - own, intervalNanos));
            }
        }
    }

    /** Returns the time until the next of these members has its turn; it may be over. */
    long nanosToNext(List<M> members, long nowNanos) {
        return members.stream()
                .filter(dueNanos::containsKey)
                .mapToLong(member -> due(member) - nowNanos)
                .min()
                .orElse(intervalNanos);
    }

    void remove(M member) {
        dueNanos.remove(member);
    }

    private long due(M member) {
        return Objects.requireNonNull(dueNanos.get(member));
    }
}
