package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.Storage;
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
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLState;

/**
 * The statement that reads events: a page of each of several partitions in one round trip.
 */
public final class FetchStatement {
    // Indexes: producer_batch_head for the heads, the primary key of segment for the tables, and those of the tables,
    // in their order. Takes no row lock.
    private static final String FETCH = """
            SELECT page, event_offset, key, value, headers, published_at
            FROM eventsql.fetch_v2(?, ?, ?, ?, ?, ?, ?)""";

    private static final String FETCH_FUNCTION = "fetch_v2";

    // Indexes: the primary keys of stream, segment and producer_batch. Takes a row lock on the stream, which only its
    // deletion waits for, when it creates or replaces the function.
    private static final String PREPARE = """
            SELECT eventsql.prepare_fetch_v1(s.stream_id), s.storage
            FROM eventsql.stream s
            WHERE s.stream_id = ?""";

    /** The sum of a page's number and that which its erased events have in place of it. */
    private static final int ERASED = -1;

    private final SqlSchema schema;
    private final String fetch;
    private final BlockFetchStatement ofBlocks;
    private final String prepare;

    public FetchStatement(SqlSchema schema) {
        this.schema = schema;
        fetch = schema.sql(FETCH);
        ofBlocks = new BlockFetchStatement(schema);
        prepare = schema.sql(PREPARE);
    }

    /**
     * A page of one partition to be fetched.
     *
     * @param maxBytes the page ends with the event that brings its values, keys and headers to this number of bytes
     */
    public record Request(int partition, long fromOffset, long maxBytes) {}

    /**
     * Creates the fetch function of a stream, or brings it up to date: the function reads new events with plans that are
     * kept. Worth it for a stream that is fetched often.
     *
     * @return the statement that calls it, for {@link #execute(String, Connection, String, int, StreamSpec, int, List, int)};
     *     empty if the stream has no such function
     */
    public Optional<String> prepare(Connection connection, int streamId) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(prepare)) {
            statement.setInt(1, streamId);
            try (ResultSet row = statement.executeQuery()) {
                @Nullable String function = row.next() ? row.getString(1) : null;
                if (function == null) {
                    return Optional.empty();
                }
                String name = "\"" + function + "\"";
                return Optional.of(schema.sql(
                        StreamTable.storage(row.getString(2)) == Storage.BLOCKS
                                ? BlockFetchStatement.calling(name)
                                : FETCH.replace(FETCH_FUNCTION, name)));
            }
        }
    }

    /** Reads a page for each request, as {@link #execute(String, Connection, String, int, StreamSpec, int, List, int)} does. */
    public List<FetchedPage> execute(
            Connection connection,
            @Nullable String incarnation,
            int streamId,
            StreamSpec stream,
            int shard,
            List<Request> requests,
            int maxEvents)
            throws SQLException {
        String sql = stream.storage() == Storage.BLOCKS ? ofBlocks.sql() : fetch;
        return execute(sql, connection, incarnation, streamId, stream, shard, requests, maxEvents);
    }

    /**
     * Reads a page for each request, in their order. A page is empty if there are no events from its first offset on.
     *
     * @param sql what {@link #prepare} has returned for the stream
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @param streamId the stream's id on this shard
     * @param maxEvents the maximum number of events of each page
     */
    public List<FetchedPage> execute(
            String sql,
            Connection connection,
            @Nullable String incarnation,
            int streamId,
            StreamSpec stream,
            int shard,
            List<Request> requests,
            int maxEvents)
            throws SQLException {
        if (stream.storage() == Storage.BLOCKS) {
            return ofBlocks.execute(sql, connection, incarnation, streamId, stream, shard, requests, maxEvents);
        }
        PublishedAt publishedAt = new PublishedAt();
        List<Rows> pages = requests.stream()
                .map(request -> new Rows(stream.name(), shard, request, publishedAt))
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            setParameters(statement, incarnation, streamId, stream, requests, maxEvents);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    pages.get(page(row.getInt(1))).add(row);
                }
            }
        }
        return pages.stream().map(Rows::page).toList();
    }

    /** Returns the number of a row's page, whether its event was erased or not. */
    static int page(int column) {
        return column < 0 ? ERASED - column : column;
    }

    /** Sets the parameters that all fetch functions of one stream have. */
    static void setParameters(
            PreparedStatement statement,
            @Nullable String incarnation,
            int streamId,
            StreamSpec stream,
            List<Request> requests,
            int maxEvents)
            throws SQLException {
        int[] partitions = new int[requests.size()];
        long[] offsets = new long[requests.size()];
        long[] maxBytes = new long[requests.size()];
        for (int i = 0; i < requests.size(); i++) {
            Request request = requests.get(i);
            partitions[i] = request.partition();
            offsets[i] = request.fromOffset();
            maxBytes[i] = request.maxBytes();
        }
        PGConnection pg = statement.getConnection().unwrap(PGConnection.class);
        statement.setString(1, incarnation);
        statement.setInt(2, streamId);
        statement.setString(3, stream.name());
        statement.setArray(4, pg.createArrayOf("int4", partitions));
        statement.setArray(5, pg.createArrayOf("int8", offsets));
        statement.setInt(6, maxEvents);
        statement.setArray(7, pg.createArrayOf("int8", maxBytes));
    }

    /**
     * Returns whether the server could not return a row, because its text is invalid (class 22) or its data are corrupted
     * (XX001, XX002); other rows it can.
     */
    public static boolean isCausedByRow(SQLException e) {
        String state = SqlErrors.state(e);
        return state.startsWith("22") || state.equals("XX001") || state.equals("XX002");
    }

    /**
     * Returns whether a statement of {@link #prepare} failed because its function was dropped, is denied to this role, or does
     * not fit the tables (class 42).
     */
    public static boolean isCausedByFunction(SQLException e) {
        return SqlErrors.state(e).startsWith("42");
    }

    /** The rows of one page. */
    static final class Rows {
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

    static long textBytes(@Nullable String text) {
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
    static final class PublishedAt {
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
