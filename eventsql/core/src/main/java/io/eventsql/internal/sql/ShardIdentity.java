package io.eventsql.internal.sql;

import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/**
 * The identity of a database in its cluster, as recorded in it.
 *
 * @param clusterId the same in all databases of a cluster
 * @param number this shard's number, from 0
 * @param name this shard's name
 * @param names the names of all shards, by number
 * @param databaseIds the ids of the databases of all shards, by number; each stays the same when its database is restored
 * @param slotMap for each key slot the number of its shard
 * @param mapVersion rises with each change of the map
 */
@SuppressWarnings("ArrayRecordComponent") // compared only by sameCluster; boxing 1,024 values has no use
public record ShardIdentity(
        UUID clusterId,
        int number,
        String name,
        List<String> names,
        List<UUID> databaseIds,
        int[] slotMap,
        int mapVersion) {

    /** Returns the identity of another shard of the same cluster. */
    public ShardIdentity forShard(int otherNumber) {
        return new ShardIdentity(
                clusterId, otherNumber, names.get(otherNumber), names, databaseIds, slotMap, mapVersion);
    }

    /** Returns the number of shards of the cluster. */
    public int shards() {
        return names.size();
    }

    /** Returns whether both belong to the same cluster and have the same slot map. */
    public boolean sameCluster(ShardIdentity other) {
        return clusterId.equals(other.clusterId)
                && names.equals(other.names)
                && databaseIds.equals(other.databaseIds)
                && mapVersion == other.mapVersion
                && Arrays.equals(slotMap, other.slotMap);
    }
}
