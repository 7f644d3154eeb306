package io.eventsql.app.benchmark;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A growing set of numbers from 0, one bit each, in chunks that exist once a number of theirs is added: a single high
 * number costs one chunk. Not thread-safe.
 */
final class NumberSet {
    private static final int CHUNK_BITS_LOG2 = 16;
    private static final int CHUNK_WORDS = (1 << CHUNK_BITS_LOG2) / Long.SIZE;

    private final Map<Long, long[]> chunks = new HashMap<>();
    private long size;

    /** The chunk used last: numbers arrive almost in order, and so mostly need no look-up. */
    private long @Nullable [] recentChunk;

    private long recentChunkNumber;

    /** Adds the number and returns whether it is new. */
    boolean add(long number) {
        long[] chunk = chunk(number >>> CHUNK_BITS_LOG2);
        int word = (int) (number >>> 6) & (CHUNK_WORDS - 1);
        long bit = 1L << number;
        boolean isNew = (chunk[word] & bit) == 0;
        if (isNew) {
            chunk[word] |= bit;
            size++;
        }
        return isNew;
    }

    /** How many different numbers were added. */
    long size() {
        return size;
    }

    private long[] chunk(long chunkNumber) {
        long[] recent = recentChunk;
        if (recent != null && chunkNumber == recentChunkNumber) {
            return recent;
        }
        long[] chunk = chunks.computeIfAbsent(chunkNumber, missing -> new long[CHUNK_WORDS]);
        recentChunk = chunk;
        recentChunkNumber = chunkNumber;
        return chunk;
    }
}
