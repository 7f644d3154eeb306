package io.eventsql.reader;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An event as stored. Two events are equal if their partitions and offsets are equal.
 *
 * @param partition where it is stored
 * @param offset its position there: from 0, without gaps, in commit order
 * @param key the key; {@code null} if it was published without one
 * @param value the payload, not copied; {@code null} if the event is a tombstone or its value was erased
 * @param headersJson the headers as a JSON object; {@code null} if there are none
 * @param publishedAt when it was stored, by the clock of the shard's database; never decreases within a partition
 * @param isErased whether its value was erased
 */
public record LogEvent(
        StreamPartition partition,
        long offset,
        @Nullable String key,
        byte @Nullable [] value,
        @Nullable String headersJson,
        Instant publishedAt,
        boolean isErased) {

    /** Returns whether it was published without a value, because its key is deleted. */
    public boolean isTombstone() {
        return value == null && !isErased;
    }

    /** Returns the value decoded as UTF-8; empty without a value. */
    public String text() {
        return value == null ? "" : new String(value, StandardCharsets.UTF_8);
    }

    /**
     * Returns the headers, in their order, unmodifiable. Decodes them with each call. A header that is not a text, which
     * the library does not write, is returned as JSON.
     *
     * @throws UndecodableEventException if they are no JSON object
     */
    public Map<String, String> headers() {
        if (headersJson == null) {
            return Map.of();
        }
        try {
            return HeadersJson.decode(headersJson);
        } catch (IllegalArgumentException e) {
            throw new UndecodableEventException(partition, offset, e);
        }
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof LogEvent that && offset == that.offset && partition.equals(that.partition);
    }

    @Override
    public int hashCode() {
        return 31 * partition.hashCode() + Long.hashCode(offset);
    }

    @Override
    public String toString() {
        String shownValue = value != null ? value.length + " bytes" : isErased ? "erased" : "tombstone";
        return "LogEvent[offset " + offset + " of " + partition + ", key=" + key + ", value=" + shownValue
                + ", headers=" + headersJson + ", publishedAt=" + publishedAt + "]";
    }
}
