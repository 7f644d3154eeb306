package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The one statement that reads events: {@code fetch_v1} of the schema's SQL files, a page of each of several partitions
 * in one round trip, by the primary keys of their segments.
 */
public final class FetchStatement {
    private final String sql;

    public FetchStatement(SqlSchema schema) {
        sql = schema.sql("SELECT page, event_offset, key, value, headers, published_at"
                + " FROM eventsql.fetch_v1(?, ?, ?, ?, ?, ?, ?)");
    }

    /** Where to begin in one partition; a page never goes beyond the segment that holds {@code fromOffset}. */
    public record Request(int partition, long fromOffset) {}

    /**
     * Reads a page for each request, in their order; a page is empty when there is nothing.
     *
     * @param streamId the stream's number on this shard
     * @param maxEvents the most events of each page
     * @param maxBytes a page ends with the event that brings its values to this many bytes
     */
    public List<List<StoredEvent>> execute(
            Connection connection,
            int streamId,
            StreamSpec stream,
            int shard,
            List<Request> requests,
            int maxEvents,
            long maxBytes)
            throws SQLException {
        List<List<StoredEvent>> pages = new ArrayList<>(requests.size());
        int[] partitions = new int[requests.size()];
        long[] offsets = new long[requests.size()];
        for (int i = 0; i < requests.size(); i++) {
            pages.add(new ArrayList<>());
            partitions[i] = requests.get(i).partition();
            offsets[i] = requests.get(i).fromOffset();
        }
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, streamId);
            statement.setString(2, stream.name());
            statement.setLong(3, stream.segmentSize());
            statement.setArray(4, pg.createArrayOf("int4", partitions));
            statement.setArray(5, pg.createArrayOf("int8", offsets));
            statement.setInt(6, maxEvents);
            statement.setLong(7, maxBytes);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    int page = rows.getInt(1);
                    pages.get(page).add(event(rows, stream.name(), shard, partitions[page]));
                }
            }
        }
        return pages;
    }

    private static StoredEvent event(ResultSet row, String stream, int shard, int partition) throws SQLException {
        @Nullable String headers = row.getString(5);
        return new StoredEvent(
                new EventPosition(stream, shard, partition, row.getLong(2)),
                row.getString(3),
                row.getBytes(4),
                headers == null ? java.util.Map.of() : HeadersJson.decode(headers),
                instant(row));
    }

    private static Instant instant(ResultSet row) throws SQLException {
        return row.getObject(6, OffsetDateTime.class).toInstant();
    }
}
