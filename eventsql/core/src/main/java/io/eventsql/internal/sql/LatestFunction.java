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
            SELECT head_partition, head, continue_partition, continue_below, partition, event_offset, value, headers::text,
                   published_at, erased_at IS NOT NULL
            FROM eventsql.find_latest_v2(?, ?, ?, ?::int, ?::bigint, ?::int, ?::bigint, ?)""";

    private final SqlSchema schema;

    public LatestFunction(SqlSchema schema) {
        this.schema = schema;
    }

    /** An offset of one of the partitions that a key has or had. */
    public record Place(int partition, long offset) {}

    /**
     * The result of a search.
     *
     * @param head where the next event of the first partition that was searched gets, as of this search
     * @param continueBelow where to continue the search; {@code null}: all segments were searched, or the event was found
     * @param event the last event of the key among those that were searched; {@code null}: there is none
     */
    public record Search(
            Place head,
            @Nullable Place continueBelow,
            @Nullable Row event) {}

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

    /**
     * Searches segments of the partition of a key, from the newest to the oldest, then of those that it had before.
     *
     * @param slot the slot of the key in the maps of the stream
     * @param from the first place to search; {@code null}: the log's start of the partition that the key had first
     * @param below the place after the last one to search; {@code null}: the head of the partition that the key has
     * @param maxSegments the maximum number of segments of each partition
     */
    public Search find(
            Connection connection,
            String stream,
            int slot,
            String key,
            @Nullable Place from,
            @Nullable Place below,
            int maxSegments) {
        return Jooq.using(connection)
                .fetchSingle(
                        schema.sql(FIND),
                        stream,
                        slot,
                        key,
                        from == null ? null : from.partition(),
                        from == null ? null : from.offset(),
                        below == null ? null : below.partition(),
                        below == null ? null : below.offset(),
                        maxSegments)
                .map(r -> {
                    @Nullable Integer continuePartition = r.get(2, Integer.class);
                    @Nullable Long offset = r.get(5, Long.class);
                    return new Search(
                            new Place(r.get(0, Integer.class), r.get(1, Long.class)),
                            continuePartition == null ? null : new Place(continuePartition, r.get(3, Long.class)),
                            offset == null
                                    ? null
                                    : new Row(
                                            r.get(4, Integer.class),
                                            offset,
                                            r.get(6, byte[].class),
                                            r.get(7, String.class),
                                            r.get(8, OffsetDateTime.class).toInstant(),
                                            r.get(9, Boolean.class)));
                });
    }
}
