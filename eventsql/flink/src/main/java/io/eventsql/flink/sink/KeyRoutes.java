package io.eventsql.flink.sink;

import java.util.List;

/**
 * Where the events of a stream go: those of a key to one partition of one shard. All that a sink knows of routing. Immutable.
 *
 * @param slotMap for each key slot the number of its shard
 * @param shards the map of the stream's partitions on each shard, by number, up to the last one with slots
 */
record KeyRoutes(List<Integer> slotMap, List<PartitionMap> shards) {
    /** A partition of a shard. */
    record Target(int shard, int partition) {}

    /**
     * How the keys of a shard are spread over the partitions of the stream. As the library's, and read from the shard: each shard
     * grows by itself.
     *
     * @param version batches that were routed by another version are rejected by the database
     * @param partitions the number of partitions
     * @param slots the partition of each slot; empty: the stream has not grown, and spreads keys by {@code hash % partitions}
     */
    record PartitionMap(int version, int partitions, List<Integer> slots) {
        /**
         * That of a shard whose map has not been read, because it is unavailable. No shard has this version, so it rejects the
         * batches, whose events are routed by its own map then.
         */
        static final PartitionMap UNREAD = first(0, 1);

        /** That of a shard to which no keys belong: it gets no events. No map has this version, not even a closed one. */
        static final PartitionMap NO_SLOTS = first(Integer.MIN_VALUE, 1);

        /** Returns the map of a stream that has not grown. */
        static PartitionMap first(int version, int partitions) {
            return new PartitionMap(version, partitions, List.of());
        }

        int partition(long hash) {
            return slots.isEmpty()
                    ? KeyHash.partition(hash, partitions)
                    : slots.get(KeyHash.partition(hash, slots.size()));
        }
    }

    /** Returns the partition of a key. */
    Target of(String key) {
        long hash = KeyHash.of(key);
        int shard = slotMap.get(KeyHash.slot(hash));
        return new Target(shard, shards.get(shard).partition(hash));
    }

    /** Returns the partition of events without a key, which take turns: that of the given turn. */
    Target ofTurn(int turn) {
        int first = Math.floorMod(turn, shards.size());
        for (int i = 0; i < shards.size(); i++) {
            int shard = (first + i) % shards.size();
            if (hasSlots(shard)) {
                int partitions = map(shard).partitions();
                return new Target(shard, Math.floorMod(Math.floorDiv(turn, shards.size()), partitions));
            }
        }
        throw new IllegalStateException("no shard has slots: " + shards);
    }

    /** Returns whether keys belong to a shard. */
    boolean hasSlots(int shard) {
        return !map(shard).equals(PartitionMap.NO_SLOTS);
    }

    /** Returns the version of the map by which events go to a partition. */
    int mapVersion(Target target) {
        return map(target.shard()).version();
    }

    /** Returns the map on a shard. The last one in the list is that of the last shard with slots. */
    private PartitionMap map(int shard) {
        return shard < shards.size() ? shards.get(shard) : PartitionMap.NO_SLOTS;
    }
}
