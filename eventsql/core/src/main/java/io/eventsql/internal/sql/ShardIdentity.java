package io.eventsql.internal.sql;

import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/**
 * Who a database is, as recorded in it.
 *
 * @param clusterId the same in all databases of a cluster
 * @param number this shard's number, from 0
 * @param name this shard's name
 * @param names the names of all shards, by number
 * @param slotMap for each key slot the number of the shard that has it
 * @param mapVersion rises with each change of the map
 */
@SuppressWarnings("ArrayRecordComponent") // compared only by sameCluster; 1,024 boxed values would serve nobody
public record ShardIdentity(
        UUID clusterId, int number, String name, List<String> names, int[] slotMap, int mapVersion) {

    /** The same cluster's identity for another of its shards. */
    public ShardIdentity forShard(int otherNumber) {
        return new ShardIdentity(clusterId, otherNumber, names.get(otherNumber), names, slotMap, mapVersion);
    }

    /** How many shards the cluster has. */
    public int shards() {
        return names.size();
    }

    /** Whether both belong to the same cluster with the same map. */
    public boolean sameCluster(ShardIdentity other) {
        return clusterId.equals(other.clusterId)
                && names.equals(other.names)
                && mapVersion == other.mapVersion
                && Arrays.equals(slotMap, other.slotMap);
    }
}
