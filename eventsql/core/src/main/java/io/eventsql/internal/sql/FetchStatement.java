package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLState;

/**
 * The statement that reads events: a page of each of several partitions in one round trip.
 */
public final class FetchStatement {
    // Indexes: producer_batch_head for the heads, the primary key of segment for the tables, and those of the tables,
    // in
    // their order. Takes no row lock.
    private static final String FETCH = """
            SELECT page, event_offset, key, value, headers, published_at
            FROM eventsql.fetch_v2(?, ?, ?, ?, ?, ?, ?)""";

    /** The sum of a page's number and that which its erased events have in place of it. */
    private static final int ERASED = -1;

    private final String fetch;

    public FetchStatement(SqlSchema schema) {
        fetch = schema.sql(FETCH);
    }

    /**
     * A page of one partition to be fetched.
     *
     * @param maxBytes the page ends with the event that brings its values, keys and headers to this number of bytes
     */
    public record Request(int partition, long fromOffset, long maxBytes) {}

    /**
     * Reads a page for each request, in their order. A page is empty if there are no events from its first offset on.
     *
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @param streamId the stream's id on this shard
     * @param maxEvents the maximum number of events of each page
     */
    public List<FetchedPage> execute(
            Connection connection,
            @Nullable String incarnation,
            int streamId,
            StreamSpec stream,
            int shard,
            List<Request> requests,
            int maxEvents)
            throws SQLException {
        List<Rows> pages = new ArrayList<>(requests.size());
        PublishedAt publishedAt = new PublishedAt();
        int[] partitions = new int[requests.size()];
        long[] offsets = new long[requests.size()];
        long[] maxBytes = new long[requests.size()];
        for (int i = 0; i < requests.size(); i++) {
            Request request = requests.get(i);
            pages.add(new Rows(stream.name(), shard, request, publishedAt));
            partitions[i] = request.partition();
            offsets[i] = request.fromOffset();
            maxBytes[i] = request.maxBytes();
        }
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(fetch)) {
            statement.setString(1, incarnation);
            statement.setInt(2, streamId);
            statement.setString(3, stream.name());
            statement.setArray(4, pg.createArrayOf("int4", partitions));
            statement.setArray(5, pg.createArrayOf("int8", offsets));
            statement.setInt(6, maxEvents);
            statement.setArray(7, pg.createArrayOf("int8", maxBytes));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    int page = row.getInt(1);
                    pages.get(page < 0 ? ERASED - page : page).add(row);
                }
            }
        }
        return pages.stream().map(Rows::page).toList();
    }

    /**
     * Returns whether the server could not return a row, because its text is invalid (class 22) or its data are corrupted
     * (XX001, XX002); other rows it can.
     */
    public static boolean isCausedByRow(SQLException e) {
        String state = SqlErrors.state(e);
        return state.startsWith("22") || state.equals("XX001") || state.equals("XX002");
    }

    /** The rows of one page. */
    private static final class Rows {
        private final String stream;
        private final int shard;
        private final Request request;
        private final PublishedAt publishedAt;
        private final List<StoredEvent> events = new ArrayList<>();
        private Map<Long, UndecodableEventException> undecodable = Map.of();
        private long nextOffset;
        private boolean endsAtHead;
        private long bytes;

        Rows(String stream, int shard, Request request, PublishedAt publishedAt) {
            this.stream = stream;
            this.shard = shard;
            this.request = request;
            this.publishedAt = publishedAt;
            this.nextOffset = request.fromOffset();
        }

        FetchedPage page() {
            return new FetchedPage(request.fromOffset(), nextOffset, endsAtHead, events, bytes, undecodable);
        }

        /** Adds an event, or, from a row without the time of one, the end of the range. */
        void add(ResultSet row) throws SQLException {
            long offset = row.getLong(2);
            byte @Nullable [] value = row.getBytes(4);
            if (value == null) {
                if (row.getObject(6) == null) {
                    nextOffset = offset;
                    endsAtHead = !events.isEmpty();
                    return;
                }
            } else {
                bytes += value.length;
            }
            events.add(event(row, new EventPosition(stream, shard, request.partition(), offset), value));
            nextOffset = offset + 1;
        }

        private StoredEvent event(ResultSet row, EventPosition position, byte @Nullable [] value) throws SQLException {
            try {
                @Nullable String key = row.getString(3);
                @Nullable String headers = row.getString(5);
                bytes += textBytes(key) + textBytes(headers);
                return new StoredEvent(
                        position,
                        key,
                        StoredValue.orEmpty(value),
                        headers == null ? Map.of() : HeadersJson.decodeLazily(headers),
                        publishedAt.of(row),
                        StoredValue.state(value, row.getInt(1) < 0));
            } catch (SQLException e) {
                if (!isInvalidText(e)) {
                    throw e;
                }
                return undecodable(row, position, value, e);
            } catch (IllegalArgumentException e) {
                return undecodable(row, position, value, e);
            }
        }

        private StoredEvent undecodable(ResultSet row, EventPosition position, byte @Nullable [] value, Exception cause)
                throws SQLException {
            StoredEvent event = new StoredEvent(
                    position,
                    textOrNull(row, 3),
                    StoredValue.orEmpty(value),
                    Map.of(),
                    publishedAt.of(row),
                    StoredValue.state(value, row.getInt(1) < 0));
            if (event.isErased()) { // nothing would decode it
                return event;
            }
            if (undecodable.isEmpty()) {
                undecodable = new HashMap<>();
            }
            undecodable.put(position.offset(), new UndecodableEventException(position, textOrNull(row, 5), cause));
            return event;
        }
    }

    private static long textBytes(@Nullable String text) {
        return text == null ? 0 : (long) text.length() * FetchedPage.CHARACTER_BYTES;
    }

    /** The rows are in memory, so that of all errors only that of the driver's decoding is the row's own. */
    private static boolean isInvalidText(SQLException e) {
        return SqlErrors.state(e).equals(PSQLState.DATA_ERROR.getState());
    }

    private static @Nullable String textOrNull(ResultSet row, int column) throws SQLException {
        try {
            return row.getString(column);
        } catch (SQLException e) {
            if (!isInvalidText(e)) {
                throw e;
            }
            return null;
        }
    }

    /** Decodes the column published_at: once for events that follow each other and have the same, as those of a batch. */
    private static final class PublishedAt {
        private byte @Nullable [] stored;
        private Instant decoded = Instant.EPOCH;

        Instant of(ResultSet row) throws SQLException {
            byte[] current = row.getBytes(6); // as the server has sent it, not copied
            if (!Arrays.equals(current, stored)) {
                decoded = row.getObject(6, OffsetDateTime.class).toInstant();
                stored = current;
            }
            return decoded;
        }
    }
}
