package io.eventsql.internal.shard;

import java.nio.charset.StandardCharsets;

/**
 * Where a key belongs. Stable for ever: every process of every version must agree.
 *
 * <p>{@code hash} is FNV-1a (64 bit; Fowler, Noll, Vo, IETF RFC 9923) over the key's UTF-8 bytes, followed by the 64-bit
 * finalizer of MurmurHash3 (Appleby, public domain), which spreads every input bit over all output bits. The slot is
 * taken from the low bits, the partition from the high ones: with the same bits for both, a shard would use only a part
 * of its partitions.
 */
public final class KeyHash {
    /** Slots of the slot map: a power of two, and the most shards a cluster can have. */
    public static final int SLOTS = 1_024;

    private static final long FNV_OFFSET_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private KeyHash() {}

    /** The 64-bit hash of a key. */
    public static long of(String key) {
        long hash = FNV_OFFSET_BASIS;
        for (byte b : key.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xff)) * FNV_PRIME;
        }
        hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccdL;
        hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return hash ^ (hash >>> 33);
    }

    /** The key's slot, 0 to {@value #SLOTS} - 1. */
    public static int slot(long hash) {
        return (int) (hash & (SLOTS - 1));
    }

    /** The key's partition on its shard. */
    public static int partition(long hash, int partitions) {
        return (int) ((hash >>> 32) % partitions);
    }
}
