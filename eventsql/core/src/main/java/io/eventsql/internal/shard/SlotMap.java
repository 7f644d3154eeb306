package io.eventsql.internal.shard;

import io.eventsql.internal.sql.ShardIdentity;
import java.util.Arrays;
import java.util.Collection;

/**
 * The shard of each key slot, as far as this process knows. A slot belongs to its giver until that shard itself has said that it
 * has closed it: so no event of a key is stored at the receiver while the giver may still store some. Immutable.
 */
public final class SlotMap {
    private final int[] owners;
    private final boolean[] hasSlots;
    private final long number;

    private SlotMap(int[] owners, long number) {
        this.owners = owners;
        this.number = number;
        hasSlots = new boolean[Arrays.stream(owners).max().orElseThrow() + 1];
        for (int owner : owners) {
            hasSlots[owner] = true;
        }
    }

    /**
     * Returns what the identities of shards say together.
     *
     * @param known what each shard has said last; not empty
     * @param number orders the maps of this process
     */
    static SlotMap of(Collection<ShardIdentity> known, long number) {
        ShardIdentity newest = known.iterator().next();
        for (ShardIdentity one : known) {
            newest = one.finishedVersion() > newest.finishedVersion() ? one : newest;
        }
        int[] base = newest.finishedMap();
        int[] owners = base.clone();
        for (ShardIdentity one : known) {
            if (one.mapVersion() == newest.finishedVersion() + 1) { // it has closed what it gives away
                for (int slot = 0; slot < owners.length; slot++) {
                    if (base[slot] == one.number()) {
                        owners[slot] = one.slotMap()[slot];
                    }
                }
            }
        }
        return new SlotMap(owners, number);
    }

    /** Returns the number of the shard that a slot belongs to. */
    public int owner(int slot) {
        return owners[slot];
    }

    /** Returns the map's number: a later map of this process has a greater one. */
    public long number() {
        return number;
    }

    /** Returns whether any slot belongs to the shard: only then it gets events. */
    public boolean hasSlots(int shard) {
        return shard < hasSlots.length && hasSlots[shard];
    }

    /** Returns whether slots of the shard belong to another one in the other map. */
    public boolean loses(int shard, SlotMap other) {
        for (int slot = 0; slot < owners.length; slot++) {
            if (owners[slot] == shard && other.owners[slot] != shard) {
                return true;
            }
        }
        return false;
    }

    /** Returns a map in which the slots of the shard belong where the other map says, and all others where this one does. */
    public SlotMap switched(int shard, SlotMap other, long newNumber) {
        int[] changed = owners.clone();
        for (int slot = 0; slot < changed.length; slot++) {
            if (owners[slot] == shard) {
                changed[slot] = other.owners[slot];
            }
        }
        return new SlotMap(changed, newNumber);
    }

    /** Returns whether both assign all slots to the same shards. */
    public boolean sameOwners(SlotMap other) {
        return Arrays.equals(owners, other.owners);
    }
}
