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
 * The statement that reads events: a page of each of several partitions in one round trip.
 */
public final class FetchStatement {
    // Indexes: producer_batch_head for the heads, and the primary keys of the segments, in their order. Takes no row
    // lock.
    private static final String FETCH = """
            SELECT page, event_offset, key, value, headers, published_at
            FROM eventsql.fetch_v1(?, ?, ?, ?, ?, ?, ?, ?)""";

    private final String fetch;

    public FetchStatement(SqlSchema schema) {
        fetch = schema.sql(FETCH);
    }

    /** The first offset of a page of one partition. A page ends at the end of its segment at the latest. */
    public record Request(int partition, long fromOffset) {}

    /**
     * Reads a page for each request, in their order. A page is empty if there are no events from its first offset on.
     *
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @param streamId the stream's id on this shard
     * @param maxEvents the maximum number of events of each page
     * @param maxBytes a page ends with the event that brings its values to this number of bytes
     */
    public List<List<StoredEvent>> execute(
            Connection connection,
            @Nullable String incarnation,
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
        try (PreparedStatement statement = connection.prepareStatement(fetch)) {
            statement.setString(1, incarnation);
            statement.setInt(2, streamId);
            statement.setString(3, stream.name());
            statement.setLong(4, stream.segmentSize());
            statement.setArray(5, pg.createArrayOf("int4", partitions));
            statement.setArray(6, pg.createArrayOf("int8", offsets));
            statement.setInt(7, maxEvents);
            statement.setLong(8, maxBytes);
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
