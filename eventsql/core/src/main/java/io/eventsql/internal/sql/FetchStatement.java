package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The one statement that reads events: a page of each of several partitions in one round trip. It names the segments
 * themselves, so its cost does not depend on how many there are, and reads each by its primary key.
 */
public final class FetchStatement {
    private final SqlSchema schema;

    public FetchStatement(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * What to read of one partition. A page never goes beyond the segment that holds {@code fromOffset}.
     *
     * @param maxEvents the most events; 0: none (the partition keeps its place in the statement, so that the statement
     *     stays the same from one fetch to the next)
     * @param maxBytes the most bytes of values; the first event is returned in any case
     */
    public record Request(int partition, long fromOffset, int maxEvents, long maxBytes) {}

    /** Reads a page for each request, in their order; a page is empty when there is nothing. */
    public List<List<StoredEvent>> execute(
            Connection connection, String stream, int shard, long segmentSize, List<Request> requests)
            throws SQLException {
        List<List<StoredEvent>> pages = new ArrayList<>(requests.size());
        for (Request request : requests) {
            pages.add(request.maxEvents() == 0 ? List.of() : new ArrayList<>());
        }
        try (PreparedStatement statement = connection.prepareStatement(sql(stream, segmentSize, requests))) {
            int parameter = 1;
            for (Request request : requests) {
                statement.setLong(parameter++, request.fromOffset());
                statement.setInt(parameter++, request.maxEvents());
                statement.setLong(parameter++, request.maxBytes());
            }
            try (ResultSet rows = Planner.rowsAfterSettings(statement)) {
                while (rows.next()) {
                    int request = rows.getInt(1);
                    pages.get(request)
                            .add(event(
                                    rows, stream, shard, requests.get(request).partition()));
                }
            }
        }
        return pages;
    }

    private String sql(String stream, long segmentSize, List<Request> requests) {
        StringBuilder sql = new StringBuilder(Planner.INDEX_ONLY);
        for (int i = 0; i < requests.size(); i++) {
            Request request = requests.get(i);
            String segment = SqlSchema.segmentTable(stream, request.partition(), request.fromOffset() / segmentSize);
            sql.append(i == 0 ? "" : " UNION ALL ")
                    .append("(SELECT ")
                    .append(i)
                    .append(", event_offset, key, value, headers, published_at FROM (")
                    .append("SELECT *, sum(octet_length(value)) OVER (ORDER BY event_offset ROWS UNBOUNDED PRECEDING)")
                    .append(" - octet_length(value) AS bytes_before FROM (")
                    .append("SELECT * FROM ")
                    .append(segment)
                    .append(" WHERE event_offset >= ? ORDER BY event_offset LIMIT ?) page) counted")
                    .append(" WHERE bytes_before < ?)");
        }
        return schema.sql(sql.toString());
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
