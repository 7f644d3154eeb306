package io.eventsql;

import java.util.List;

/**
 * A move of keys between shards, as it is now: see {@link EventSql#moveShards}. Keys belong to 1,024 slots, slots to shards. Events
 * that are stored stay where they are.
 *
 * @param shards the numbers of the shards that keys belong to afterwards
 * @param mapVersion the version of the slot map afterwards
 * @param state how far it is
 * @param shares the slots of each shard before and afterwards
 * @param transfers the slots that move; empty if all keys belong where they should
 * @param streams the streams whose later events move with their keys
 * @param staying the streams whose keys stay on the shards that they have: compacted ones, those that count the events of keys, and
 *     those that a sink has written to exactly once
 */
public record ShardMove(
        List<Integer> shards,
        int mapVersion,
        State state,
        List<ShardShare> shares,
        List<Transfer> transfers,
        List<String> streams,
        List<String> staying) {

    public ShardMove {
        shards = List.copyOf(shards);
        shares = List.copyOf(shares);
        transfers = List.copyOf(transfers);
        streams = List.copyOf(streams);
        staying = List.copyOf(staying);
    }

    /** How far a move is. */
    public enum State {
        /** Nothing has been done. */
        PENDING,
        /** It was decided, and receivers are being prepared. {@link EventSql#cancelShardMove} undoes it. */
        PREPARING,
        /** Shards have begun to close slots: it cannot be undone, and must be completed. */
        MOVING,
        /** All keys belong where they should. Consumers may still have to handle earlier events on the former shards. */
        DONE
    }

    /**
     * The slots of a shard.
     *
     * @param shard the shard's number
     * @param name the shard's name
     * @param slots how many slots it has
     * @param slotsAfter how many it has afterwards
     */
    public record ShardShare(int shard, String name, int slots, int slotsAfter) {}

    /**
     * Slots that move from one shard to another.
     *
     * @param slots the slots, from 0 to 1,023: the low ten bits of the hash of a key
     */
    public record Transfer(int from, int to, List<Integer> slots) {
        public Transfer {
            slots = List.copyOf(slots);
        }
    }

    /** Returns whether all keys belong where they should. */
    public boolean isDone() {
        return state == State.DONE;
    }

    /** Returns how many of the 1,024 slots move: their share of all keys, roughly. */
    public int movingSlots() {
        return transfers.stream().mapToInt(transfer -> transfer.slots().size()).sum();
    }
}
