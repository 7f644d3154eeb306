package io.eventsql;

import java.util.List;

/**
 * The growth of a stream to more partitions, as it is now: see {@link EventSql#grow}.
 *
 * @param stream the stream
 * @param partitions the number of partitions that the stream is to have on each shard
 * @param shards the shards by number; they grow one after the other, each in one transaction
 */
public record Growth(String stream, int partitions, List<ShardGrowth> shards) {

    public Growth {
        shards = List.copyOf(shards);
    }

    /** How far a shard is. */
    public enum State {
        /** Nothing has been done. */
        PENDING,
        /** It has the new partitions with their tables, and nothing uses them yet. */
        PREPARED,
        /** The keys belong to the new partitions: this cannot be undone. */
        GROWN
    }

    /**
     * The growth on one shard.
     *
     * @param shard the shard's number
     * @param name the shard's name
     * @param state how far it is
     * @param partitions the number of partitions over which the keys are spread now, with those of keys that have moved there
     * @param slots the number of groups of keys that can belong to different partitions
     * @param movingSlots how many slots belong to the new partitions afterwards; 0 if the shard has grown
     */
    public record ShardGrowth(int shard, String name, State state, int partitions, int slots, int movingSlots) {}

    /** Returns whether all shards have grown. */
    public boolean isDone() {
        return shards.stream().allMatch(shard -> shard.state() == State.GROWN);
    }
}
