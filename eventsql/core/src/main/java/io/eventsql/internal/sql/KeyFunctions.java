package io.eventsql.internal.sql;

import io.eventsql.ValueState;
import java.sql.Connection;
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
    // events of
    // the key. Takes no row lock.
    private static final String READ = """
            SELECT version, partition, event_offset, value, headers, published_at, is_erased
            FROM eventsql.read_key_v2(?, ?, ?, ?, ?, ?)""";

    private final SqlSchema schema;

    public KeyFunctions(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * An event.
     *
     * @param value {@code null} without a value
     * @param headers a JSON object, or {@code null}
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the event as it is
    public record Row(
            int partition,
            long offset,
            byte @Nullable [] value,
            @Nullable String headers,
            Instant publishedAt,
            boolean isErased) {

        /** Returns whether it has a value. */
        public ValueState valueState() {
            return StoredValue.state(value, isErased);
        }

        /** Returns the value as an event has it. */
        public byte[] valueOrEmpty() {
            return StoredValue.orEmpty(value);
        }
    }

    /** The version of a key and some of its events, in order. */
    public record Page(long version, List<Row> events) {}

    /**
     * Returns the version of a key; 0: it never had an event.
     *
     * @param home the partition of the key before the stream grew for the first time
     */
    public long version(Connection connection, String stream, int home, String key) {
        return Objects.requireNonNull((Long) Jooq.using(connection).fetchValue(schema.sql(VERSION), stream, home, key));
    }

    /**
     * Returns the events of a key from a position on, in order.
     *
     * @param slot the slot of the key in the maps of the stream
     */
    public Page read(
            Connection connection,
            String stream,
            int slot,
            String key,
            int fromPartition,
            long fromOffset,
            int maxEvents) {
        long version = 0;
        List<Row> events = new ArrayList<>();
        for (org.jooq.Record r : Jooq.using(connection)
                .fetch(schema.sql(READ), stream, slot, key, fromPartition, fromOffset, maxEvents)) {
            version = r.get(0, Long.class);
            Long offset = r.get(2, Long.class);
            if (offset != null) {
                events.add(new Row(
                        r.get(1, Integer.class),
                        offset,
                        r.get(3, byte[].class),
                        r.get(4, String.class),
                        r.get(5, OffsetDateTime.class).toInstant(),
                        r.get(6, Boolean.class)));
            }
        }
        return new Page(version, events);
    }
}
