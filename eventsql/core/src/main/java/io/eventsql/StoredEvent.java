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
 * @param value the payload; not copied. Empty, too, if the event has no value: {@code valueState} tells these apart.
 * @param headers the headers, unmodifiable; those of a fetched event are decoded when they are first used
 * @param publishedAt when the event was stored, by the clock of the shard's database; never decreases within a partition
 * @param valueState whether the event has a value; see {@link #isTombstone()} and {@link #isErased()}
 */
public record StoredEvent(
        EventPosition position,
        @Nullable String key,
        byte[] value,
        Map<String, String> headers,
        Instant publishedAt,
        ValueState valueState) {

    /** Creates an event with a value. */
    public StoredEvent(
            EventPosition position,
            @Nullable String key,
            byte[] value,
            Map<String, String> headers,
            Instant publishedAt) {
        this(position, key, value, headers, publishedAt, ValueState.PRESENT);
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

    /**
     * Returns whether the event was published without a value, because its key is deleted ({@link Event#tombstone}). The value
     * is empty then.
     */
    public boolean isTombstone() {
        return valueState == ValueState.TOMBSTONE;
    }

    /**
     * Returns whether the value was erased ({@link EventSql#erase(ErasureSpec)}). The value is empty then. Handlers receive no
     * such event.
     */
    public boolean isErased() {
        return valueState == ValueState.ERASED;
    }

    /** Returns the value decoded as UTF-8; empty without a value. */
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
        String shownValue = switch (valueState) {
            case PRESENT -> "value=" + value.length + " bytes";
            case TOMBSTONE -> "tombstone";
            case ERASED -> "erased";
        };
        return "StoredEvent[" + position + ", key=" + key + ", " + shownValue + ", headers=" + headers
                + ", publishedAt=" + publishedAt + "]";
    }
}
