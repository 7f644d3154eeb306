package io.eventsql.internal.sql;

import io.eventsql.ValueState;
import java.sql.Connection;
import java.time.Instant;
import java.time.OffsetDateTime;
import org.jspecify.annotations.Nullable;

/** The function that finds the last event of a key. It only reads. */
public final class LatestFunction {
    // Indexes: the primary key of segment, producer_batch_head, and the index of keys of each segment that is searched.
    // Takes
    // no row lock.
    private static final String FIND = """
            SELECT head, continue_below, event_offset, value, headers::text, published_at, erased_at IS NOT NULL
            FROM eventsql.find_latest_v1(?, ?, ?, ?::bigint, ?::bigint, ?)""";

    private final SqlSchema schema;

    public LatestFunction(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * The result of a search.
     *
     * @param head the offset of the partition's next event, as of this search
     * @param continueBelow where to continue the search; {@code null}: all segments were searched, or the event was found
     * @param event the last event of the key among the offsets that were searched; {@code null}: there is none
     */
    public record Search(
            long head,
            @Nullable Long continueBelow,
            @Nullable Row event) {}

    /**
     * An event.
     *
     * @param value {@code null} without a value
     * @param headers a JSON object, or {@code null}
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the event as it is
    public record Row(
            long offset, byte @Nullable [] value, @Nullable String headers, Instant publishedAt, boolean isErased) {

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
     * Searches segments of a partition, from the newest to the oldest.
     *
     * @param from the first offset to search; {@code null}: the log's start
     * @param below the offset after the last one to search; {@code null}: the head
     */
    public Search find(
            Connection connection,
            String stream,
            int partition,
            String key,
            @Nullable Long from,
            @Nullable Long below,
            int maxSegments) {
        return Jooq.using(connection)
                .fetchSingle(schema.sql(FIND), stream, partition, key, from, below, maxSegments)
                .map(r -> {
                    @Nullable Long offset = r.get(2, Long.class);
                    return new Search(
                            r.get(0, Long.class),
                            r.get(1, Long.class),
                            offset == null
                                    ? null
                                    : new Row(
                                            offset,
                                            r.get(3, byte[].class),
                                            r.get(4, String.class),
                                            r.get(5, OffsetDateTime.class).toInstant(),
                                            r.get(6, Boolean.class)));
                });
    }
}
