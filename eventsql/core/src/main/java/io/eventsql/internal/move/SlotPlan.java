package io.eventsql.internal.move;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Which slots move, from a slot map to the next one. Immutable. */
final class SlotPlan {
    private final int[] before;
    private final int[] after;

    SlotPlan(int[] before, int[] after) {
        this.before = before.clone();
        this.after = after.clone();
    }

    /**
     * Returns the plan after which the slots are shared equally among some shards, by one slot at most. Only those slots move that
     * must: those of shards that get none any more, and what others have too many.
     */
    static SlotPlan of(int[] before, Collection<Integer> shards) {
        Map<Integer, Integer> owned = new TreeMap<>();
        shards.forEach(shard -> owned.put(shard, 0));
        for (int owner : before) {
            owned.computeIfPresent(owner, (shard, slots) -> slots + 1);
        }
        List<Integer> byOwned = new ArrayList<>(owned.keySet());
        byOwned.sort(Comparator.comparingInt((Integer shard) -> -owned.getOrDefault(shard, 0)));
        Map<Integer, Integer> lacking = new TreeMap<>();
        for (int i = 0; i < byOwned.size(); i++) { // who has most keeps one more, if the shares differ
            int share = before.length / byOwned.size() + (i < before.length % byOwned.size() ? 1 : 0);
            lacking.put(byOwned.get(i), share - owned.getOrDefault(byOwned.get(i), 0));
        }
        List<Integer> receivers = new ArrayList<>();
        int[] after = before.clone();
        for (int slot = 0, turn = 0; slot < before.length; slot++) {
            Integer missing = lacking.get(before[slot]);
            if (missing != null && missing >= 0) {
                continue;
            }
            if (missing != null) {
                lacking.put(before[slot], missing + 1);
            }
            if (receivers.isEmpty()) {
                lacking.forEach((shard, slots) -> {
                    if (slots > 0) {
                        receivers.add(shard);
                    }
                });
            }
            int receiver = receivers.get(turn % receivers.size()); // in turn, so that each gets slots of all givers
            after[slot] = receiver;
            if (lacking.merge(receiver, -1, Integer::sum) == 0) {
                receivers.remove(Integer.valueOf(receiver));
            } else {
                turn++;
            }
        }
        return new SlotPlan(before, after);
    }

    int[] before() {
        return before.clone();
    }

    int[] after() {
        return after.clone();
    }

    boolean isEmpty() {
        return Arrays.equals(before, after);
    }

    /** Returns the shards that have slots afterwards. */
    Set<Integer> shards() {
        Set<Integer> shards = new TreeSet<>();
        Arrays.stream(after).forEach(shards::add);
        return shards;
    }

    /** Returns the shards that give slots away. */
    Set<Integer> givers() {
        Set<Integer> givers = new TreeSet<>();
        for (int slot = 0; slot < before.length; slot++) {
            if (before[slot] != after[slot]) {
                givers.add(before[slot]);
            }
        }
        return givers;
    }

    /** Returns the shards that receive slots. */
    Set<Integer> receivers() {
        Set<Integer> receivers = new TreeSet<>();
        for (int slot = 0; slot < before.length; slot++) {
            if (before[slot] != after[slot]) {
                receivers.add(after[slot]);
            }
        }
        return receivers;
    }

    /** Returns the slots that a shard receives. */
    List<Integer> received(int shard) {
        List<Integer> slots = new ArrayList<>();
        for (int slot = 0; slot < before.length; slot++) {
            if (before[slot] != shard && after[slot] == shard) {
                slots.add(slot);
            }
        }
        return slots;
    }

    /** Returns the slots that move from one shard to another. */
    List<Integer> moving(int from, int to) {
        List<Integer> slots = new ArrayList<>();
        for (int slot = 0; slot < before.length; slot++) {
            if (before[slot] == from && after[slot] == to && from != to) {
                slots.add(slot);
            }
        }
        return slots;
    }

    /** Returns the number of slots that a shard has before. */
    int ownedBefore(int shard) {
        return (int) Arrays.stream(before).filter(owner -> owner == shard).count();
    }

    /** Returns the number of slots that a shard has afterwards. */
    int ownedAfter(int shard) {
        return (int) Arrays.stream(after).filter(owner -> owner == shard).count();
    }
}
