package io.eventsql.internal.shard;

import java.util.function.IntPredicate;

/**
 * The shares of the keys that the partitions of a stream have on a shard to which keys have moved. They are counted in key slots: one
 * that has moved there counts 1, and the slots of the stream's own map count what the others are, together. Not thread-safe.
 */
final class SlotShares {
    private final short[] slots;
    private final short[] moved;
    private final IntPredicate hasKeySlot;
    /** What a slot of {@link #slots} counts. */
    private final double weight;
    /** What each partition has. */
    private final double[] shares;

    private final double fairShare;
    private final int firstNew;
    /** The new partition that gets slots at the moment. */
    private int receiver;

    /**
     * @param slots the partition of each slot, which is changed
     * @param moved the partition of each key slot, -1: as {@code slots} says; it is changed
     * @param hasKeySlot whether a key slot belongs to the shard
     * @param firstNew the first partition that is added
     * @param partitions the number of all partitions
     */
    SlotShares(short[] slots, short[] moved, IntPredicate hasKeySlot, int firstNew, int partitions) {
        this.slots = slots;
        this.moved = moved;
        this.hasKeySlot = hasKeySlot;
        this.firstNew = firstNew;
        this.receiver = firstNew;
        this.shares = new double[partitions];
        int own = 0;
        int others = 0;
        for (int slot = 0; slot < moved.length; slot++) {
            if (hasMovedHere(slot)) {
                shares[moved[slot]]++;
                others++;
            } else if (hasKeySlot.test(slot)) {
                own++;
            }
        }
        weight = (double) own / slots.length;
        for (short partition : slots) {
            shares[partition] += weight;
        }
        fairShare = (double) (own + others) / partitions;
    }

    /** Gives the new partitions their shares. */
    void grow() {
        for (int giver = 0; giver < firstNew; giver++) {
            for (int slot = 0; slot < slots.length && weight > 0; slot++) {
                if (slots[slot] == giver && gives(giver, weight)) {
                    slots[slot] = (short) receiver;
                }
            }
            for (int slot = 0; slot < moved.length; slot++) {
                if (moved[slot] == giver && hasMovedHere(slot) && gives(giver, 1)) {
                    moved[slot] = (short) receiver;
                }
            }
        }
    }

    private boolean hasMovedHere(int slot) {
        return moved[slot] >= 0 && hasKeySlot.test(slot);
    }

    /** Counts that the receiver gets a slot, unless the giver has none to spare, or all have enough. */
    private boolean gives(int giver, double slot) {
        if (shares[giver] - fairShare < slot / 2) {
            return false;
        }
        while (receiver < shares.length && fairShare - shares[receiver] < slot / 2) {
            receiver++;
        }
        if (receiver == shares.length) {
            return false;
        }
        shares[giver] -= slot;
        shares[receiver] += slot;
        return true;
    }
}
