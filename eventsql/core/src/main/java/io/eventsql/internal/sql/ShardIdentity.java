package io.eventsql.internal.sql;

import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

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
 * @param formerSlotMap the map before, until all shards have this one: then slots of other shards may still belong where it says;
 *     {@code null}: all shards have closed what they give away
 */
@SuppressWarnings("ArrayRecordComponent") // compared by their content where they are; boxing 1,024 values has no use
public record ShardIdentity(
        UUID clusterId,
        int number,
        String name,
        List<String> names,
        List<UUID> databaseIds,
        int[] slotMap,
        int mapVersion,
        int @Nullable [] formerSlotMap) {

    /** Returns the identity of another shard of the same cluster. */
    public ShardIdentity forShard(int otherNumber) {
        return new ShardIdentity(
                clusterId, otherNumber, names.get(otherNumber), names, databaseIds, slotMap, mapVersion, formerSlotMap);
    }

    /** Returns the number of shards of the cluster. */
    public int shards() {
        return names.size();
    }

    /** Returns the identity with further shards, which have no slots. */
    public ShardIdentity withShards(List<String> moreNames, List<UUID> moreIds) {
        return new ShardIdentity(clusterId, number, name, moreNames, moreIds, slotMap, mapVersion, formerSlotMap);
    }

    /** Returns the version that all shards are known to have. */
    public int finishedVersion() {
        return formerSlotMap == null ? mapVersion : mapVersion - 1;
    }

    /** Returns the map that all shards are known to have. */
    public int[] finishedMap() {
        return formerSlotMap == null ? slotMap : formerSlotMap;
    }

    /**
     * Returns whether both belong to the same cluster. One may lack shards that were added while its database was unavailable; one
     * may be a slot map ahead while keys move.
     */
    public boolean sameCluster(ShardIdentity other) {
        int common = Math.min(names.size(), other.names.size());
        return clusterId.equals(other.clusterId)
                && names.subList(0, common).equals(other.names.subList(0, common))
                && databaseIds.subList(0, common).equals(other.databaseIds.subList(0, common))
                && (mapVersion > other.mapVersion
                        ? follows(other)
                        : other.mapVersion > mapVersion ? other.follows(this) : Arrays.equals(slotMap, other.slotMap));
    }

    /** Returns whether this shard can have the map that follows the other one's. */
    private boolean follows(ShardIdentity before) {
        if (mapVersion != before.mapVersion + 1 || Arrays.equals(slotMap, before.slotMap)) {
            return false;
        } else if (formerSlotMap != null) {
            return Arrays.equals(formerSlotMap, before.slotMap);
        }
        for (int slot = 0; slot < slotMap.length; slot++) {
            if (before.slotMap[slot] == before.number && slotMap[slot] != before.number) {
                return false; // all shards have closed what they give away: this one went back in time
            }
        }
        return true;
    }
}
