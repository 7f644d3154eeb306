package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An event as it is stored: what a handler gets and what {@link EventSql#read} returns. {@code value} and {@code
 * headers} are this instance's own; two stored events are equal when their positions are.
 *
 * @param position where it is stored
 * @param key the key it was published with, or {@code null}
 * @param value the payload; not copied
 * @param headers the headers, unmodifiable
 * @param publishedAt when the shard's database stored it (database clock); never runs backwards within a partition
 */
public record StoredEvent(
        EventPosition position, @Nullable String key, byte[] value, Map<String, String> headers, Instant publishedAt) {

    /** The stream's name. */
    public String stream() {
        return position.stream();
    }

    /** The shard's number. */
    public int shard() {
        return position.shard();
    }

    /** The partition on its shard. */
    public int partition() {
        return position.partition();
    }

    /** The offset in its partition. */
    public long offset() {
        return position.offset();
    }

    /** The value read as UTF-8. */
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
                + ", publishedAt=" + publishedAt + "]";
    }
}
