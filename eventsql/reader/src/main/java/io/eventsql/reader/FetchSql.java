package io.eventsql.reader;

import io.eventsql.reader.FetchedRange.FetchRequest;
import io.eventsql.reader.ReaderSql.StreamGoneException;
import io.eventsql.reader.ReaderSql.StreamRow;
import java.nio.charset.CharacterCodingException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The statements that read events of both storages: a range of each of several partitions in one round trip. Immutable. */
final class FetchSql {
    // Indexes: producer_batch_head for the heads, the primary key of segment for the tables, and those of the tables,
    // in their order. Takes no row lock.
    private static final String FETCH_ROWS = """
            SELECT page, event_offset, key, value, headers, published_at
            FROM eventsql.fetch_v2(?, ?, ?, ?, ?, ?, ?)""";

    // As above.
    private static final String FETCH_BLOCKS = """
            SELECT page, event_offset, events, published_at, block, distances, erased_at
            FROM eventsql.fetch_blocks_v1(?, ?, ?, ?, ?, ?, ?)""";

    /** The sum of a page's number and that which its erased events have in place of it. */
    private static final int ERASED = -1;

    private final ReaderSql sql;
    private final String fetchRows;
    private final String fetchBlocks;

    FetchSql(ReaderSql sql) {
        this.sql = sql;
        fetchRows = sql.inSchema(FETCH_ROWS);
        fetchBlocks = sql.inSchema(FETCH_BLOCKS);
    }

    /**
     * Reads a range for each request, in their order; that of a partition which does not exist is {@link
     * FetchedRange#isMissing}.
     *
     * @param incarnation that of the database when the stream's id was read
     * @throws StreamGoneException if the id belongs to no stream
     */
    List<FetchedRange> fetch(
            Connection connection,
            String incarnation,
            StreamRow stream,
            List<FetchRequest> requests,
            int eventsMax,
            long bytesMax)
            throws SQLException {
        List<FetchedRange> ranges = requests.stream()
                .map(request -> new FetchedRange(request, eventsMax, bytesMax))
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(stream.isBlocks() ? fetchBlocks : fetchRows)) {
            setParameters(statement, incarnation, stream, requests, eventsMax, bytesMax);
            try (ResultSet row = statement.executeQuery()) {
                Times times = new Times();
                while (row.next()) {
                    int page = row.getInt(1);
                    FetchedRange range = ranges.get(page < 0 ? ERASED - page : page);
                    long offset = row.getLong(2);
                    if (row.wasNull()) { // there is no head
                        range.markMissing();
                    } else if (stream.isBlocks()) {
                        addBlock(range, row, offset);
                    } else {
                        addRow(range, row, offset, page < 0, times);
                    }
                }
            }
        }
        if (ranges.stream().anyMatch(FetchedRange::isMissing)) {
            requireExisting(connection, stream);
        }
        return ranges;
    }

    /** Tells a stream that was deleted from one that lacks a partition: a fetch by the id of either finds no head. */
    private void requireExisting(Connection connection, StreamRow stream) throws SQLException {
        if (!sql.findStream(connection, stream.name()).equals(Optional.of(stream))) {
            throw new StreamGoneException();
        }
    }

    private static void setParameters(
            PreparedStatement statement,
            String incarnation,
            StreamRow stream,
            List<FetchRequest> requests,
            int eventsMax,
            long bytesMax)
            throws SQLException {
        Object[] partitions = new Object[requests.size()];
        Object[] offsets = new Object[requests.size()];
        Object[] bytes = new Object[requests.size()];
        for (int i = 0; i < requests.size(); i++) {
            FetchRequest request = requests.get(i);
            partitions[i] = request.partition().partition();
            offsets[i] = request.fromOffset();
            bytes[i] = bytesMax;
        }
        Connection connection = statement.getConnection();
        statement.setString(1, incarnation);
        statement.setInt(2, stream.id());
        statement.setString(3, stream.name());
        statement.setArray(4, connection.createArrayOf("int4", partitions));
        statement.setArray(5, connection.createArrayOf("int8", offsets));
        statement.setInt(6, eventsMax);
        statement.setArray(7, connection.createArrayOf("int8", bytes));
    }

    /** Adds an event, or, from a row without the time of one, the end of the range. */
    private static void addRow(FetchedRange range, ResultSet row, long offset, boolean isErased, Times times)
            throws SQLException {
        Instant publishedAt = times.read(row, 6);
        if (publishedAt == null) {
            range.endAt(offset);
        } else if (range.accepts(offset, 0)) { // the database has counted the bytes
            range.add(new LogEvent(
                    range.partition(),
                    offset,
                    row.getString(3),
                    row.getBytes(4),
                    row.getString(5),
                    publishedAt,
                    isErased));
        }
    }

    /** Adds the events of a block, or, from a row without a time, the end of the range. */
    private static void addBlock(FetchedRange range, ResultSet row, long last) throws SQLException {
        OffsetDateTime publishedAt = row.getObject(4, OffsetDateTime.class);
        if (publishedAt == null) {
            range.endAt(last);
            return;
        }
        EventBlock block;
        try {
            block = new EventBlock(row.getBytes(5), row.getInt(3));
        } catch (IllegalArgumentException e) { // nothing says which offsets it has
            range.endBeforeDamage(e);
            return;
        }
        @Nullable Object[] distances = elements(row.getArray(6));
        @Nullable Object[] erasedAt = elements(row.getArray(7));
        for (int i = 0; i < block.size(); i++) {
            Object distance = distances.length == 0 ? null : distances[i];
            long offset = last - (distance == null ? block.size() - 1 - i : (Integer) distance);
            if (range.accepts(offset, block.bytes(i))) {
                try {
                    range.add(new LogEvent(
                            range.partition(),
                            offset,
                            block.key(i),
                            block.value(i),
                            block.headers(i),
                            publishedAt.toInstant(),
                            erasedAt.length > 0 && erasedAt[i] != null));
                } catch (CharacterCodingException e) {
                    range.endBefore(new UndecodableEventException(range.partition(), offset, e));
                }
            }
        }
        range.extendTo(last + 1); // the last event of the block may have been removed
    }

    private static @Nullable Object[] elements(@Nullable Array array) throws SQLException {
        return array == null ? new Object[0] : (Object[]) array.getArray();
    }

    /** Decodes times: once for events that follow each other and have the same, as those of a batch. */
    private static final class Times {
        private byte @Nullable [] stored;
        private Instant decoded = Instant.EPOCH;

        @Nullable
        Instant read(ResultSet row, int column) throws SQLException {
            byte[] current = row.getBytes(column);
            if (current == null) {
                return null;
            }
            if (!Arrays.equals(current, stored)) {
                decoded = row.getObject(column, OffsetDateTime.class).toInstant();
                stored = current;
            }
            return decoded;
        }
    }
}
