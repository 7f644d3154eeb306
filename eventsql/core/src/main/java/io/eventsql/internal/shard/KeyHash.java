package io.eventsql.internal.shard;

import java.nio.charset.StandardCharsets;

/**
 * Maps keys to slots and partitions. It never changes, because every process of every version must agree on it.
 *
 * <p>{@code hash} is FNV-1a (64 bit; Fowler, Noll, Vo, IETF RFC 9923) over the key's UTF-8 bytes, followed by the
 * 64-bit finalizer of MurmurHash3 (Appleby, public domain), by which every input bit affects all output bits. The slot
 * is taken from the low bits and the partition from the high ones: with the same bits for both, a shard would use only
 * a part of its partitions.
 */
public final class KeyHash {
    /** The number of slots of the slot map: a power of two, and the maximum number of shards of a cluster. */
    public static final int SLOTS = 1_024;

    private static final long FNV_OFFSET_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private KeyHash() {}

    /** Returns the 64-bit hash of a key. */
    public static long of(String key) {
        long hash = FNV_OFFSET_BASIS;
        for (int i = 0; i < key.length(); i++) {
            char c = key.charAt(i);
            if (c >= 0x80) {
                return finish(ofBytes(key.getBytes(StandardCharsets.UTF_8)));
            }
            hash = (hash ^ c) * FNV_PRIME; // one byte of UTF-8
        }
        return finish(hash);
    }

    private static long ofBytes(byte[] bytes) {
        long hash = FNV_OFFSET_BASIS;
        for (byte b : bytes) {
            hash = (hash ^ (b & 0xff)) * FNV_PRIME;
        }
        return hash;
    }

    private static long finish(long fnv) {
        long hash = fnv;
        hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccdL;
        hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return hash ^ (hash >>> 33);
    }

    /** Returns the slot of a hash, from 0 to {@value #SLOTS} - 1. */
    public static int slot(long hash) {
        return (int) (hash & (SLOTS - 1));
    }

    /** Returns the partition of a hash on its shard. */
    public static int partition(long hash, int partitions) {
        return (int) ((hash >>> 32) % partitions);
    }
}
