package io.eventsql.internal.sql;

import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
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
 * @param unused the shards that have no events
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
        int @Nullable [] formerSlotMap,
        Unused unused) {

    /**
     * The shards that have no events: processes need not be given their databases.
     *
     * @param spare the numbers of those that were added and have had no slots yet
     * @param removed the numbers of those that were removed from the cluster
     */
    public record Unused(Set<Integer> spare, Set<Integer> removed) {
        /** All shards are in use. */
        public static final Unused NONE = new Unused(Set.of(), Set.of());

        public Unused {
            spare = Set.copyOf(spare);
            removed = Set.copyOf(removed);
        }

        /** Returns what the identities of shards say together: a removed one never has events again, a spare one may get some. */
        public static Unused of(Collection<ShardIdentity> known) {
            Set<Integer> spare = new TreeSet<>();
            Set<Integer> removed = new TreeSet<>();
            for (ShardIdentity one : known) {
                spare.addAll(one.unused.spare);
                removed.addAll(one.unused.removed);
            }
            // A database that was unavailable when shards were added does not know them.
            spare.removeIf(
                    shard -> known.stream().anyMatch(one -> shard < one.shards() && !one.unused.spare.contains(shard)));
            return new Unused(spare, removed);
        }

        /** Returns whether a shard has no events. */
        public boolean contains(int shard) {
            return spare.contains(shard) || removed.contains(shard);
        }
    }

    /** Returns the identity of another shard of the same cluster. */
    public ShardIdentity forShard(int otherNumber) {
        return new ShardIdentity(
                clusterId,
                otherNumber,
                names.get(otherNumber),
                names,
                databaseIds,
                slotMap,
                mapVersion,
                formerSlotMap,
                unused);
    }

    /** Returns the number of shards of the cluster. */
    public int shards() {
        return names.size();
    }

    /** Returns the identity with further shards, which have no slots. */
    public ShardIdentity withShards(List<String> moreNames, List<UUID> moreIds) {
        Set<Integer> spare = new TreeSet<>(unused.spare());
        for (int added = names.size(); added < moreNames.size(); added++) {
            spare.add(added);
        }
        return new ShardIdentity(
                clusterId,
                number,
                name,
                moreNames,
                moreIds,
                slotMap,
                mapVersion,
                formerSlotMap,
                new Unused(spare, unused.removed()));
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
