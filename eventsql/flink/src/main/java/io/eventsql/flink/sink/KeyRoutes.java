package io.eventsql.flink.sink;

import java.util.List;

/**
 * Where the events of a stream go: those of a key to one partition of one shard. All that a sink knows of routing. Immutable.
 *
 * @param slotMap for each key slot the number of its shard
 * @param shards the map of the stream's partitions on each shard, by number
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

        /** That of a shard to which no keys belong: it gets no events. */
        static final PartitionMap NO_SLOTS = first(-1, 1);

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
        int shard = Math.floorMod(turn, shards.size());
        while (shards.get(shard).equals(PartitionMap.NO_SLOTS)) {
            shard = (shard + 1) % shards.size();
        }
        return new Target(
                shard,
                Math.floorMod(
                        Math.floorDiv(turn, shards.size()), shards.get(shard).partitions()));
    }

    /** Returns the version of the map by which events go to a partition. */
    int mapVersion(Target target) {
        return shards.get(target.shard()).version();
    }
}
