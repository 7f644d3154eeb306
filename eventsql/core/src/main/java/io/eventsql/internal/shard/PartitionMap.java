package io.eventsql.internal.shard;

import java.util.Arrays;
import java.util.Collection;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The partition of each key of a stream on one shard. Keys belong to slots, slots to partitions; growth moves slots. Immutable;
 * an append names the version, which the shard compares.
 *
 * <p>A stream that has not grown needs no slots: its keys are spread by {@code hash % partitions}. Its number of slots is a
 * multiple of that number of partitions, so the same placement can be written as slots, whatever the number is.
 *
 * <p>Keys that have moved here from other shards have partitions of their own: those of {@code moved}, by their key slots.
 */
public final class PartitionMap {
    /** The upper bound of the number of slots: more than the partitions of a stream, so that these get equal shares. */
    static final int SLOTS_MAX = 4_096;

    private final int version;
    private final int partitions;
    /** {@code null}: as spread by the stream that has not grown. */
    private final short @Nullable [] slots;
    /** The partition of each key slot, -1: as {@link #slots} says; {@code null}: all are as {@link #slots} says. */
    private final short @Nullable [] moved;
    /** Whether keys have moved to or from the shard since the stream exists. */
    private final boolean isPlacement;

    private PartitionMap(
            int version, int partitions, short @Nullable [] slots, short @Nullable [] moved, boolean isPlacement) {
        this.version = version;
        this.partitions = partitions;
        this.slots = slots;
        this.moved = moved;
        this.isPlacement = isPlacement;
    }

    /** Returns the map of a stream that has not grown. */
    public static PartitionMap first(int version, int partitions) {
        return new PartitionMap(version, partitions, null, null, false);
    }

    /** Returns the map of a stream that has grown. */
    static PartitionMap of(int version, int partitions, Short[] stored) {
        return of(version, partitions, stored, null, false);
    }

    /** Returns the map of a stream that has grown, or to which keys of other shards have moved. */
    static PartitionMap of(
            int version, int partitions, Short @Nullable [] slots, Short @Nullable [] moved, boolean isPlacement) {
        return new PartitionMap(version, partitions, unboxed(slots), unboxed(moved), isPlacement);
    }

    private static short @Nullable [] unboxed(Short @Nullable [] stored) {
        if (stored == null) {
            return null;
        }
        short[] values = new short[stored.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = stored[i];
        }
        return values;
    }

    /**
     * Returns the slot of a key with this hash in every map of a stream.
     *
     * @param firstPartitions the number of partitions with which the stream was created
     */
    public static int slot(long hash, int firstPartitions) {
        return KeyHash.partition(hash, slots(firstPartitions));
    }

    /**
     * Returns the partition of a key with this hash before the stream grew for the first time, where its events are counted.
     *
     * @param firstPartitions the number of partitions with which the stream was created
     */
    public static int home(long hash, int firstPartitions) {
        return KeyHash.partition(hash, firstPartitions);
    }

    private static int slots(int firstPartitions) {
        return SLOTS_MAX / firstPartitions * firstPartitions;
    }

    public int version() {
        return version;
    }

    /** Returns the number of partitions over which {@link #slots} spreads keys; events without one are spread over all of them, too. */
    public int partitions() {
        return partitions;
    }

    /** Returns the number of partitions that are in use: those of keys that have moved here may follow the others. */
    public int usedPartitions() {
        int used = partitions;
        if (moved != null) {
            for (short partition : moved) {
                used = Math.max(used, partition + 1);
            }
        }
        return used;
    }

    /** Returns whether all partitions over which {@link #slots} spreads keys are among some. */
    public boolean isWithin(Collection<Integer> some) {
        return some.containsAll(IntStream.range(0, partitions).boxed().toList());
    }

    /** Returns whether keys have moved to or from the shard since the stream exists, or it has no keys there. */
    public boolean hasMoved() {
        return isPlacement || version < 0;
    }

    /** Returns whether the stream has grown. */
    public boolean hasGrown() {
        return slots != null;
    }

    /** Returns the partition of each key slot, -1: as {@link #slots} says; {@code null}: all are as {@link #slots} says. */
    public short @Nullable [] moved() {
        return moved == null ? null : moved.clone();
    }

    /** Returns the partition of a key with this hash. */
    public int partition(long hash) {
        if (moved != null && moved[KeyHash.slot(hash)] >= 0) {
            return moved[KeyHash.slot(hash)];
        }
        short[] current = slots;
        return current == null ? KeyHash.partition(hash, partitions) : current[KeyHash.partition(hash, current.length)];
    }

    /** Returns the partition of each slot. */
    public short[] slots() {
        if (slots != null) {
            return slots.clone();
        }
        short[] first = new short[slots(partitions)];
        for (int i = 0; i < first.length; i++) {
            first[i] = (short) (i % partitions);
        }
        return first;
    }

    /**
     * Returns the next map, with more partitions. Each gets an equal share of the keys, about; only keys move that the new
     * partitions get, and each of these gets them from as few partitions as possible.
     *
     * @param morePartitions more than {@link #usedPartitions}
     * @param hasKeySlot whether a key slot belongs to the shard
     */
    public PartitionMap grown(int morePartitions, IntPredicate hasKeySlot) {
        if (morePartitions <= usedPartitions()) {
            throw new IllegalArgumentException(morePartitions + " partitions are not more than " + usedPartitions());
        }
        short[] next = slots();
        short[] nextMoved = moved();
        if (nextMoved == null) {
            growEvenly(next, morePartitions);
        } else {
            new SlotShares(next, nextMoved, hasKeySlot, usedPartitions(), morePartitions).grow();
        }
        return new PartitionMap(version + 1, morePartitions, next, nextMoved, isPlacement);
    }

    /** Each partition gets an equal number of slots, or one more. */
    private void growEvenly(short[] next, int morePartitions) {
        int share = next.length / morePartitions;
        int larger = next.length % morePartitions; // the first ones have one more
        int[] owned = new int[morePartitions];
        for (short partition : next) {
            owned[partition]++;
        }
        int receiver = partitions;
        for (int giver = 0; giver < partitions; giver++) {
            int surplus = owned[giver] - share - (giver < larger ? 1 : 0);
            for (int slot = 0; slot < next.length && surplus > 0; slot++) {
                while (receiver < morePartitions && owned[receiver] == share + (receiver < larger ? 1 : 0)) {
                    receiver++;
                }
                if (receiver == morePartitions) {
                    break;
                }
                if (next[slot] == giver) {
                    next[slot] = (short) receiver;
                    owned[receiver]++;
                    surplus--;
                }
            }
        }
    }

    /** Returns the number of slots that can belong to partitions of their own: those of {@link #slots}, and the key slots that have moved here. */
    public int countSlots(IntPredicate hasKeySlot) {
        int slotsOfKeys = slots().length;
        for (int slot = 0; moved != null && slot < moved.length; slot++) {
            slotsOfKeys += moved[slot] >= 0 && hasKeySlot.test(slot) ? 1 : 0;
        }
        return slotsOfKeys;
    }

    /** Returns the number of slots that belong to other partitions in the other map, which has as many slots. */
    public int movedSlots(PartitionMap other) {
        short[] otherMoved = other.moved;
        return differences(slots(), other.slots())
                + (moved == null || otherMoved == null ? 0 : differences(moved, otherMoved));
    }

    private static int differences(short[] here, short[] there) {
        int different = 0;
        for (int i = 0; i < here.length; i++) {
            different += here[i] == there[i] ? 0 : 1;
        }
        return different;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof PartitionMap map
                && version == map.version
                && partitions == map.partitions
                && Arrays.equals(slots, map.slots)
                && Arrays.equals(moved, map.moved);
    }

    @Override
    public int hashCode() {
        return 31 * version + partitions;
    }

    @Override
    public String toString() {
        return "map " + version + " of " + partitions + " partitions";
    }
}
