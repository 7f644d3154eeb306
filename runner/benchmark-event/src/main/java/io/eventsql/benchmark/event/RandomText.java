package io.eventsql.benchmark.event;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Random printable ASCII without quotes and backslashes, so that JSON needs no escapes. Copied from a pool, because
 * generating it for each event would take longer than publishing. Thread-safe.
 */
final class RandomText {
    private static final byte[] POOL = new byte[256 << 10];

    static {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        for (int i = 0; i < POOL.length; ) {
            char c = (char) random.nextInt(' ', '~' + 1);
            if (c != '"' && c != '\'' && c != '\\') {
                POOL[i++] = (byte) c;
            }
        }
    }

    private RandomText() {}

    /** Fills a part of the array from a random position of the pool. */
    static void copy(byte[] target, int from, int length) {
        int poolFrom = ThreadLocalRandom.current().nextInt(POOL.length);
        int copied = 0;
        while (copied < length) {
            int chunk = Math.min(length - copied, POOL.length - poolFrom);
            System.arraycopy(POOL, poolFrom, target, from + copied, chunk);
            copied += chunk;
            poolFrom = 0;
        }
    }
}
