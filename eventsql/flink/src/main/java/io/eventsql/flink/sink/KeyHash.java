package io.eventsql.flink.sink;

import java.nio.charset.StandardCharsets;

/**
 * Maps keys to slots and partitions, as the library does (FNV-1a over UTF-8, then the 64-bit finalizer of MurmurHash3): every
 * publisher of a stream must agree on it, so it never changes.
 */
final class KeyHash {
    static final int SLOTS = 1_024;

    private static final long FNV_OFFSET_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private KeyHash() {}

    static long of(String key) {
        long hash = FNV_OFFSET_BASIS;
        for (byte b : key.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xff)) * FNV_PRIME;
        }
        hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccdL;
        hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return hash ^ (hash >>> 33);
    }

    static int slot(long hash) {
        return (int) (hash & (SLOTS - 1));
    }

    static int partition(long hash, int partitions) {
        return (int) ((hash >>> 32) % partitions);
    }
}
