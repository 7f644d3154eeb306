package io.eventsql.internal.sql;

import io.eventsql.ValueState;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The function that finds the last event of a key. It only reads. */
public final class LatestFunction {
    // Indexes: the primary key of segment, producer_batch_head, and the index of keys of each segment that is searched.
    // Takes
    // no row lock.
    private static final String FIND = """
            SELECT head_partition, head, continue_partition, continue_below, partition, event_offset, value, headers::text,
                   published_at, erased_at IS NOT NULL
            FROM eventsql.find_latest_v2(?, ?, ?, ?, ?, ?, ?, ?)""";

    private final String find;

    public LatestFunction(SqlSchema schema) {
        this.find = schema.sql(FIND);
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
            int maxSegments)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(find)) {
            statement.setString(1, stream);
            statement.setInt(2, slot);
            statement.setString(3, key);
            setPlace(statement, 4, from);
            setPlace(statement, 6, below);
            statement.setInt(8, maxSegments);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Search(Objects.requireNonNull(place(row, 1)), place(row, 3), event(row));
            }
        }
    }

    private static void setPlace(PreparedStatement statement, int first, @Nullable Place place) throws SQLException {
        statement.setObject(first, place == null ? null : place.partition(), Types.INTEGER);
        statement.setObject(first + 1, place == null ? null : place.offset(), Types.BIGINT);
    }

    private static @Nullable Place place(ResultSet row, int first) throws SQLException {
        int partition = row.getInt(first);
        return row.wasNull() ? null : new Place(partition, row.getLong(first + 1));
    }

    private static @Nullable Row event(ResultSet row) throws SQLException {
        long offset = row.getLong(6);
        if (row.wasNull()) {
            return null;
        }
        return new Row(
                row.getInt(5),
                offset,
                row.getBytes(7),
                row.getString(8),
                row.getObject(9, OffsetDateTime.class).toInstant(),
                row.getBoolean(10));
    }
}
