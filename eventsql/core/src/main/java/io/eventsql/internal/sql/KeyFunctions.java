package io.eventsql.internal.sql;

import io.eventsql.ValueState;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The functions that read the version and the events of a key. They only read. */
public final class KeyFunctions {
    // Indexes: stream_name_unique, the primary key of key_version. Takes no row lock.
    private static final String VERSION = "SELECT eventsql.key_version_v1(?, ?, ?)";

    // Indexes: the primary keys of key_version, key_segment and segment, and the index of keys of each segment with
    // events of the key. Takes no row lock.
    private static final String READ = """
            SELECT version, partition, event_offset, value, headers, published_at, is_erased, events, distances, erased_at
            FROM eventsql.read_key_v4(?, ?, ?, ?, ?, ?, ?)""";

    private final String version;
    private final String read;

    public KeyFunctions(SqlSchema schema) {
        this.version = schema.sql(VERSION);
        this.read = schema.sql(READ);
    }

    /** The headers of an event as a JSON object, {@code null} if it has none. */
    @FunctionalInterface
    public interface Headers {
        @Nullable
        String json() throws CharacterCodingException;
    }

    /**
     * An event.
     *
     * @param value {@code null} without a value
     * @param bytes the size of the key, the value and the headers
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the event as it is
    public record Row(
            int partition,
            long offset,
            byte @Nullable [] value,
            Headers headers,
            Instant publishedAt,
            boolean isErased,
            long bytes) {

        /** Returns whether it has a value. */
        public ValueState valueState() {
            return StoredValue.state(value, isErased);
        }

        /** Returns the value as an event has it. */
        public byte[] valueOrEmpty() {
            return StoredValue.orEmpty(value);
        }
    }

    /**
     * The version of a key and some of its events, in order.
     *
     * @param isLast whether the stream has no more of them
     * @param partition the partition that the next events are in, unless it has no more
     * @param nextOffset the offset from which on they are
     */
    public record Page(long version, List<Row> events, boolean isLast, int partition, long nextOffset) {}

    /**
     * Returns the version of a key; 0: it never had an event.
     *
     * @param home the partition of the key before the stream grew for the first time
     */
    public long version(Connection connection, String stream, int home, String key) {
        return Objects.requireNonNull((Long) Jooq.using(connection).fetchValue(version, stream, home, key));
    }

    /**
     * Returns the events of a key from a position on, in order: those of a block together, so maybe more than asked for, and
     * maybe fewer, as long as it is not the last page.
     *
     * @param slot the slot of the key in the maps of the stream
     * @param maxRows the maximum number of events, or of blocks that have some of them
     * @param maxBytes the page ends with the event that brings its keys, values and headers to this number of bytes, or with the
     *     block that brings the sizes of the blocks to it
     */
    public Page read(
            Connection connection,
            String stream,
            int slot,
            String key,
            int fromPartition,
            long fromOffset,
            int maxRows,
            long maxBytes)
            throws SQLException {
        long version = 0;
        boolean isLast = true;
        int partition = fromPartition;
        long nextOffset = fromOffset;
        List<Row> events = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(read)) {
            statement.setString(1, stream);
            statement.setInt(2, slot);
            statement.setString(3, key);
            statement.setInt(4, fromPartition);
            statement.setLong(5, fromOffset);
            statement.setInt(6, maxRows);
            statement.setLong(7, maxBytes);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    version = row.getLong(1);
                    long offset = row.getLong(3);
                    if (row.wasNull()) { // this row only has the version
                        continue;
                    }
                    partition = row.getInt(2);
                    OffsetDateTime publishedAt = row.getObject(6, OffsetDateTime.class);
                    if (publishedAt == null) { // this row is where the next page begins
                        isLast = false;
                        nextOffset = offset;
                    } else {
                        addEvents(
                                row, publishedAt.toInstant(), key, partition == fromPartition ? fromOffset : 0, events);
                    }
                }
            }
        }
        return new Page(version, events, isLast, partition, nextOffset);
    }

    /** Adds an event, or those that a block has of a key from an offset on. */
    private static void addEvents(ResultSet row, Instant publishedAt, String key, long fromOffset, List<Row> events)
            throws SQLException {
        int partition = row.getInt(2);
        long last = row.getLong(3);
        byte[] value = row.getBytes(4);
        String headers = row.getString(5);
        int size = row.getInt(8);
        if (row.wasNull()) {
            long bytes = bytes(key) + bytes(headers) + (value == null ? 0 : value.length);
            events.add(new Row(partition, last, value, () -> headers, publishedAt, row.getBoolean(7), bytes));
            return;
        }
        EventBlock block = EventBlock.stored(value, size);
        @Nullable Integer[] distances = EventBlock.distances(row.getArray(9));
        @Nullable Object[] erasedAt = EventBlock.times(row.getArray(10));
        for (int i = 0; i < size; i++) {
            int event = i;
            long offset = block.offset(last, distances, i);
            if (offset >= fromOffset && block.hasKey(i, key)) {
                events.add(new Row(
                        partition,
                        offset,
                        block.value(i),
                        () -> block.headers(event),
                        publishedAt,
                        erasedAt.length > 0 && erasedAt[i] != null,
                        block.bytes(i)));
            }
        }
    }

    private static long bytes(@Nullable String text) {
        return text == null ? 0 : text.getBytes(StandardCharsets.UTF_8).length;
    }
}
