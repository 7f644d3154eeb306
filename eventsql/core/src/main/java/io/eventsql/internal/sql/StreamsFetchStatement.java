package io.eventsql.internal.sql;

import io.eventsql.Storage;
import io.eventsql.internal.sql.FetchStatement.Request;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** The statements that read events of several streams in one round trip: as {@link FetchStatement} does of one stream. */
public final class StreamsFetchStatement {
    // Indexes: producer_batch_head for the heads, the primary key of stream; of what has new events, those of fetch_v2.
    // Takes no row lock.
    private static final String ROWS = """
            SELECT page, event_offset, key, value, headers, published_at
            FROM eventsql.fetch_streams_v1(?, ?, ?, ?, ?, ?, ?)""";

    // Indexes: as above, those of fetch_blocks_v1. Takes no row lock.
    private static final String BLOCKS = """
            SELECT page, event_offset, events, published_at, block, distances, erased_at
            FROM eventsql.fetch_block_streams_v1(?, ?, ?, ?, ?, ?, ?)""";

    private final String rows;
    private final String blocks;

    public StreamsFetchStatement(SqlSchema schema) {
        rows = schema.sql(ROWS);
        blocks = schema.sql(BLOCKS);
    }

    /**
     * A page of one partition of a stream to be fetched.
     *
     * @param streamId the stream's id on this shard
     * @param stream the stream's name
     * @param maxEvents the maximum number of events
     */
    public record StreamRequest(int streamId, String stream, int maxEvents, Request request) {}

    /**
     * Reads a page for each request, in their order. A page is empty if there are no events from its first offset on.
     *
     * @param incarnation that of the database when the streams' ids were read; {@code null}: not compared
     * @param storage the storage of all streams
     */
    public List<FetchedPage> execute(
            Connection connection,
            @Nullable String incarnation,
            Storage storage,
            int shard,
            List<StreamRequest> requests)
            throws SQLException {
        return storage == Storage.BLOCKS
                ? blocks(connection, incarnation, shard, requests)
                : rows(connection, incarnation, shard, requests);
    }

    private List<FetchedPage> rows(
            Connection connection, @Nullable String incarnation, int shard, List<StreamRequest> requests)
            throws SQLException {
        FetchStatement.PublishedAt publishedAt = new FetchStatement.PublishedAt();
        List<FetchStatement.Rows> pages = requests.stream()
                .map(one -> new FetchStatement.Rows(one.stream(), shard, one.request(), publishedAt))
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(rows)) {
            setParameters(statement, incarnation, requests);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    pages.get(FetchStatement.page(row.getInt(1))).add(row);
                }
            }
        }
        return pages.stream().map(FetchStatement.Rows::page).toList();
    }

    private List<FetchedPage> blocks(
            Connection connection, @Nullable String incarnation, int shard, List<StreamRequest> requests)
            throws SQLException {
        List<BlockFetchStatement.Page> pages = requests.stream()
                .map(one -> new BlockFetchStatement.Page(one.stream(), shard, one.request(), one.maxEvents()))
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(blocks)) {
            setParameters(statement, incarnation, requests);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    pages.get(row.getInt(1)).add(row);
                }
            }
        }
        return pages.stream().map(BlockFetchStatement.Page::fetched).toList();
    }

    private static void setParameters(
            PreparedStatement statement, @Nullable String incarnation, List<StreamRequest> requests)
            throws SQLException {
        PGConnection pg = statement.getConnection().unwrap(PGConnection.class);
        statement.setString(1, incarnation);
        statement.setArray(2, pg.createArrayOf("int4", ints(requests, StreamRequest::streamId)));
        statement.setArray(3, pg.createArrayOf("text", strings(requests, StreamRequest::stream)));
        statement.setArray(
                4, pg.createArrayOf("int4", ints(requests, one -> one.request().partition())));
        statement.setArray(
                5, pg.createArrayOf("int8", longs(requests, one -> one.request().fromOffset())));
        statement.setArray(6, pg.createArrayOf("int4", ints(requests, StreamRequest::maxEvents)));
        statement.setArray(
                7, pg.createArrayOf("int8", longs(requests, one -> one.request().maxBytes())));
    }

    private static int[] ints(List<StreamRequest> requests, ToIntFunction<StreamRequest> value) {
        return requests.stream().mapToInt(value).toArray();
    }

    private static long[] longs(List<StreamRequest> requests, ToLongFunction<StreamRequest> value) {
        return requests.stream().mapToLong(value).toArray();
    }

    private static String[] strings(List<StreamRequest> requests, Function<StreamRequest, String> value) {
        return requests.stream().map(value).toArray(String[]::new);
    }
}
