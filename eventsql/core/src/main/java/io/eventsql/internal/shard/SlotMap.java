package io.eventsql.internal.shard;

import io.eventsql.internal.sql.ShardIdentity;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The shard of each key slot, as far as this process knows. A slot belongs to its giver until that shard itself has said that it
 * has closed it: so no event of a key is stored at the receiver while the giver may still store some. Stationary streams have slot
 * maps of their own. Immutable.
 */
public final class SlotMap {
    private final int[] owners;
    private final boolean[] hasSlots;
    private final long number;
    /** The slot maps of stationary streams, by name. */
    private final Map<String, SlotMap> kept;

    private SlotMap(int[] owners, long number, Map<String, SlotMap> kept) {
        this.owners = owners;
        this.number = number;
        this.kept = kept;
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
     * @param kept the slot maps of stationary streams, by name
     */
    static SlotMap of(Collection<ShardIdentity> known, long number, Map<String, SlotMap> kept) {
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
        return new SlotMap(owners, number, Map.copyOf(kept));
    }

    /** Returns the slot map of a stationary stream. */
    static SlotMap kept(int[] owners) {
        return new SlotMap(owners, 0, Map.of());
    }

    /** Returns the slot map by which the keys of a stream belong to shards. */
    public SlotMap of(String stream) {
        return kept.isEmpty() ? this : kept.getOrDefault(stream, this);
    }

    /**
     * Returns this map with another one of a stream.
     *
     * @param ofStream {@code null}: the stream is not stationary
     */
    public SlotMap with(String stream, @Nullable SlotMap ofStream, long newNumber) {
        Map<String, SlotMap> changed = new HashMap<>(kept);
        if (ofStream == null) {
            changed.remove(stream);
        } else {
            changed.put(stream, ofStream);
        }
        return new SlotMap(owners, newNumber, Map.copyOf(changed));
    }

    private Set<String> keptByEither(SlotMap other) {
        Set<String> streams = new HashSet<>(kept.keySet());
        streams.addAll(other.kept.keySet());
        return streams;
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

    /** Returns whether slots of the shard belong to another one in the other map, of any stream. */
    public boolean loses(int shard, SlotMap other) {
        return losesSlots(shard, other)
                || keptByEither(other).stream().anyMatch(stream -> of(stream).losesSlots(shard, other.of(stream)));
    }

    private boolean losesSlots(int shard, SlotMap other) {
        if (this == other) {
            return false;
        }
        for (int slot = 0; slot < owners.length; slot++) {
            if (owners[slot] == shard && other.owners[slot] != shard) {
                return true;
            }
        }
        return false;
    }

    /** Returns a map in which the slots of the shard belong where the other map says, and all others where this one does. */
    public SlotMap switched(int shard, SlotMap other, long newNumber) {
        Map<String, SlotMap> changed = new HashMap<>();
        for (String stream : keptByEither(other)) {
            SlotMap after = other.of(stream);
            SlotMap ofStream = kept(of(stream).switchedSlots(shard, after));
            if (!Arrays.equals(ofStream.owners, after.owners)) {
                changed.put(stream, ofStream);
            } else if (other.kept.containsKey(stream)) {
                changed.put(stream, after);
            }
        }
        return new SlotMap(switchedSlots(shard, other), newNumber, Map.copyOf(changed));
    }

    private int[] switchedSlots(int shard, SlotMap other) {
        int[] changed = owners.clone();
        for (int slot = 0; slot < changed.length; slot++) {
            if (owners[slot] == shard) {
                changed[slot] = other.owners[slot];
            }
        }
        return changed;
    }

    /** Returns whether both assign all slots of all streams to the same shards. */
    public boolean sameOwners(SlotMap other) {
        return Arrays.equals(owners, other.owners)
                && keptByEither(other).stream()
                        .allMatch(stream -> Arrays.equals(of(stream).owners, other.of(stream).owners));
    }
}
