package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.sql.FetchStatement.Request;
import java.nio.charset.CharacterCodingException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The statement that reads events of a stream that stores blocks: as {@link FetchStatement} does. */
final class BlockFetchStatement {
    // Indexes: those of a fetch of rows. Takes no row lock.
    private static final String FETCH = """
            SELECT page, event_offset, events, published_at, block, distances, erased_at
            FROM eventsql.fetch_blocks_v1(?, ?, ?, ?, ?, ?, ?)""";

    private static final String FETCH_FUNCTION = "fetch_blocks_v1";

    private final String fetch;

    BlockFetchStatement(SqlSchema schema) {
        fetch = schema.sql(FETCH);
    }

    /** Returns the statement that serves all streams. */
    String sql() {
        return fetch;
    }

    /** Returns the statement that calls another function, which {@link SqlSchema#sql} has not seen yet. */
    static String calling(String function) {
        return FETCH.replace(FETCH_FUNCTION, function);
    }

    /** See {@link FetchStatement#execute}. */
    List<FetchedPage> execute(
            String sql,
            Connection connection,
            @Nullable String incarnation,
            int streamId,
            StreamSpec stream,
            int shard,
            List<Request> requests,
            int maxEvents)
            throws SQLException {
        List<Page> pages = requests.stream()
                .map(request -> new Page(stream.name(), shard, request, maxEvents))
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            FetchStatement.setParameters(statement, incarnation, streamId, stream, requests, maxEvents);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    pages.get(row.getInt(1)).add(row);
                }
            }
        }
        return pages.stream().map(Page::fetched).toList();
    }

    /** The events of one page. */
    static final class Page {
        private final String stream;
        private final int shard;
        private final Request request;
        private final int maxEvents;
        private final List<StoredEvent> events = new ArrayList<>();
        private Map<Long, UndecodableEventException> undecodable = Map.of();
        private long nextOffset;
        private boolean isFull;
        private boolean endsAtHead;
        private long bytes;
        private long bytesLeft;

        Page(String stream, int shard, Request request, int maxEvents) {
            this.stream = stream;
            this.shard = shard;
            this.request = request;
            this.maxEvents = maxEvents;
            this.nextOffset = request.fromOffset();
            this.bytesLeft = request.maxBytes();
        }

        FetchedPage fetched() {
            return new FetchedPage(request.fromOffset(), nextOffset, endsAtHead, events, bytes, undecodable);
        }

        /** Adds the events of a block, or, from a row without a time, the end of the range. */
        void add(ResultSet row) throws SQLException {
            if (isFull) {
                return;
            }
            long last = row.getLong(2);
            OffsetDateTime publishedAt = row.getObject(4, OffsetDateTime.class);
            if (publishedAt == null) {
                nextOffset = last;
                endsAtHead = !events.isEmpty();
                return;
            }
            EventBlock block = EventBlock.stored(row.getBytes(5), row.getInt(3));
            @Nullable Integer[] distances = EventBlock.distances(row.getArray(6));
            @Nullable Object[] erasedAt = EventBlock.times(row.getArray(7));
            Instant time = publishedAt.toInstant();
            for (int i = 0; i < block.size(); i++) {
                long offset = block.offset(last, distances, i);
                if (offset < request.fromOffset()) {
                    continue;
                }
                if (events.size() == maxEvents || bytesLeft <= 0) {
                    isFull = true;
                    return;
                }
                EventPosition position = new EventPosition(stream, shard, request.partition(), offset);
                bytesLeft -= block.bytes(i);
                events.add(event(block, i, position, time, erasedAt.length > 0 && erasedAt[i] != null));
                nextOffset = offset + 1;
            }
            nextOffset = last + 1; // the last event of the block may have been removed
        }

        private StoredEvent event(EventBlock block, int i, EventPosition position, Instant time, boolean isErased) {
            byte @Nullable [] value = block.value(i);
            bytes += value == null ? 0 : value.length;
            @Nullable String key = null;
            @Nullable String headers = null;
            try {
                key = block.key(i);
                headers = block.headers(i);
                bytes += FetchStatement.textBytes(key) + FetchStatement.textBytes(headers);
                return event(
                        position,
                        key,
                        value,
                        headers == null ? Map.of() : HeadersJson.decodeLazily(headers),
                        time,
                        isErased);
            } catch (CharacterCodingException | IllegalArgumentException e) {
                if (!isErased) { // otherwise nothing would decode it
                    if (undecodable.isEmpty()) {
                        undecodable = new HashMap<>();
                    }
                    undecodable.put(position.offset(), new UndecodableEventException(position, headers, e));
                }
                return event(position, key, value, Map.of(), time, isErased);
            }
        }

        private static StoredEvent event(
                EventPosition position,
                @Nullable String key,
                byte @Nullable [] value,
                Map<String, String> headers,
                Instant time,
                boolean isErased) {
            return new StoredEvent(
                    position, key, StoredValue.orEmpty(value), headers, time, StoredValue.state(value, isErased));
        }
    }
}
