package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A stored event, as passed to handlers and returned by {@link EventSql#read}. {@code value} and {@code headers} are not
 * shared with other instances. Two stored events are equal if their positions are equal.
 *
 * @param position the event's position
 * @param key the key; {@code null} if it was published without one
 * @param value the payload; not copied
 * @param headers the headers, unmodifiable
 * @param publishedAt when the event was stored, by the clock of the shard's database; never decreases within a partition
 * @param isErased whether the value was erased ({@link EventSql#erase(ErasureSpec)}) and is empty. Handlers receive no such
 *     event.
 */
public record StoredEvent(
        EventPosition position,
        @Nullable String key,
        byte[] value,
        Map<String, String> headers,
        Instant publishedAt,
        boolean isErased) {

    /** Creates an event that is not erased. */
    public StoredEvent(
            EventPosition position,
            @Nullable String key,
            byte[] value,
            Map<String, String> headers,
            Instant publishedAt) {
        this(position, key, value, headers, publishedAt, false);
    }

    /** Returns the stream's name. */
    public String stream() {
        return position.stream();
    }

    /** Returns the shard's number. */
    public int shard() {
        return position.shard();
    }

    /** Returns the partition on that shard. */
    public int partition() {
        return position.partition();
    }

    /** Returns the offset in that partition. */
    public long offset() {
        return position.offset();
    }

    /** Returns the value decoded as UTF-8. */
    public String text() {
        return new String(value, StandardCharsets.UTF_8);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof StoredEvent that && position.equals(that.position);
    }

    @Override
    public int hashCode() {
        return position.hashCode();
    }

    @Override
    public String toString() {
        return "StoredEvent[" + position + ", key=" + key + ", value=" + value.length + " bytes, headers=" + headers
                + ", publishedAt=" + publishedAt + (isErased ? ", erased]" : "]");
    }
}
