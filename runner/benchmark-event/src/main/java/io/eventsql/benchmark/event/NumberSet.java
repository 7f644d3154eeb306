package io.eventsql.benchmark.event;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;

/**
 * A growing set of numbers from 0 to {@value BenchmarkEvent#NUMBER_MAX}, with one bit each in chunks that are allocated
 * on demand, so that a single high number costs one chunk. Sets of several processes can be merged through their text
 * form. Not thread-safe.
 */
public final class NumberSet {
    private static final int CHUNK_BITS_LOG2 = 16;
    private static final int CHUNK_WORDS = (1 << CHUNK_BITS_LOG2) / Long.SIZE;
    private static final long CHUNK_MAX = BenchmarkEvent.NUMBER_MAX >>> CHUNK_BITS_LOG2;

    private final Map<Long, long[]> chunks = new TreeMap<>();
    private long size;

    /** The most recently used chunk. Numbers arrive almost in order and rarely need a lookup. */
    private long @Nullable [] recentChunk;

    private long recentChunkNumber;

    /** Adds a number. Returns whether it is new. */
    public boolean add(long number) {
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

    /** Adds all numbers of another set. */
    public void addAll(NumberSet other) {
        other.chunks.forEach(this::addChunk);
    }

    private void addChunk(long chunkNumber, long[] added) {
        long[] chunk = chunk(chunkNumber);
        for (int word = 0; word < CHUNK_WORDS; word++) {
            size += Long.bitCount(added[word] & ~chunk[word]);
            chunk[word] |= added[word];
        }
    }

    /** Returns the number of distinct numbers. */
    public long size() {
        return size;
    }

    /** Returns a copy. */
    public NumberSet copy() {
        NumberSet copy = new NumberSet();
        copy.addAll(this);
        return copy;
    }

    /**
     * Encodes the set as text: Base64 of the deflated number of chunks (int) and, for each chunk, its number (long) and
     * its 1,024 words (long), see {@link #decode}. Takes at most about a sixth of a byte per number for dense sets, and
     * next to nothing if no number is missing.
     */
    public String encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(new DeflaterOutputStream(bytes))) {
            out.writeInt(chunks.size());
            for (Map.Entry<Long, long[]> chunk : chunks.entrySet()) {
                out.writeLong(chunk.getKey());
                for (long word : chunk.getValue()) {
                    out.writeLong(word);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory failed", e);
        }
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    /**
     * Decodes a set.
     *
     * @throws IllegalArgumentException if the text is not an encoded set
     */
    public static NumberSet decode(String text) {
        NumberSet set = new NumberSet();
        byte[] bytes = Base64.getDecoder().decode(text);
        try (DataInputStream in = new DataInputStream(new InflaterInputStream(new ByteArrayInputStream(bytes)))) {
            int count = in.readInt();
            for (int i = 0; i < count; i++) {
                set.addChunk(readChunkNumber(in), readWords(in));
            }
            if (in.read() >= 0) {
                throw new IllegalArgumentException("not an encoded set of numbers: trailing data");
            }
        } catch (IOException e) {
            throw new IllegalArgumentException("not an encoded set of numbers: " + e.getMessage(), e);
        }
        return set;
    }

    private static long readChunkNumber(DataInputStream in) throws IOException {
        long chunkNumber = in.readLong();
        if (chunkNumber < 0 || chunkNumber > CHUNK_MAX) {
            throw new IOException("invalid chunk " + chunkNumber);
        }
        return chunkNumber;
    }

    private static long[] readWords(DataInputStream in) throws IOException {
        long[] words = new long[CHUNK_WORDS];
        for (int word = 0; word < CHUNK_WORDS; word++) {
            words[word] = in.readLong();
        }
        return words;
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
