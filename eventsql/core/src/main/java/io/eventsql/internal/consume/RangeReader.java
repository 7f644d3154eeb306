package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.PartitionTable.Head;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/** Reads a range of a partition without a consumer. Thread-safe. */
public final class RangeReader {
    private final Shards shards;
    private final StreamRegistry streams;

    public RangeReader(Shards shards, StreamRegistry streams) {
        this.shards = shards;
        this.streams = streams;
    }

    /** See {@link io.eventsql.EventSql#read}. */
    public List<StoredEvent> read(EventPosition from, int maxEvents, long maxBytes) {
        StreamSpec stream = streams.require(from.stream());
        requireIndex("position.shard", from.shard(), shards.size());
        requireIndex("position.partition", from.partition(), stream.partitions());
        Shard shard = shards.get(from.shard());
        try {
            return read(shard, stream, from, maxEvents, maxBytes);
        } catch (SQLException e) {
            throw new EventSqlException("Reading events from " + from + " failed: " + e.getMessage(), e);
        }
    }

    private static List<StoredEvent> read(
            Shard shard, StreamSpec stream, EventPosition from, int maxEvents, long maxBytes) throws SQLException {
        List<StoredEvent> events = new ArrayList<>();
        long next = from.offset();
        long bytesLeft = maxBytes;
        while (events.size() < maxEvents && bytesLeft > 0) {
            List<StoredEvent> page =
                    fetchPage(shard, stream, from.partition(), next, maxEvents - events.size(), bytesLeft);
            if (page.isEmpty() || page.getFirst().offset() != next) {
                if (events.isEmpty()) {
                    requireInRange(shard, stream, from);
                }
                return events;
            }
            events.addAll(page);
            for (StoredEvent event : page) {
                bytesLeft -= event.value().length;
            }
            next += page.size();
            if (next % stream.segmentSize() != 0) {
                return events; // not at a segment's end: at the head or at a limit
            }
        }
        return events;
    }

    /** Fetches a page of one segment; empty if the segment does not exist. */
    private static List<StoredEvent> fetchPage(
            Shard shard, StreamSpec stream, int partition, long from, int maxEvents, long maxBytes)
            throws SQLException {
        OptionalInt streamId = shard.readStreamId(stream);
        if (streamId.isEmpty()) {
            return List.of();
        }
        Request request = new Request(partition, from);
        return shard.require()
                .call(c -> shard.tables()
                        .fetch()
                        .execute(
                                c,
                                null,
                                streamId.getAsInt(),
                                stream,
                                shard.number(),
                                List.of(request),
                                maxEvents,
                                maxBytes))
                .getFirst();
    }

    private static void requireInRange(Shard shard, StreamSpec stream, EventPosition from) throws SQLException {
        OptionalInt streamId = shard.readStreamId(stream);
        Head head = streamId.isEmpty()
                ? new Head(0, from.partition(), 0, 0)
                : shard.require()
                        .call(c -> shard.tables().partitions().heads(c, null, new int[] {streamId.getAsInt()}))
                        .get(from.partition());
        if (from.offset() < head.logStart() || from.offset() > head.head()) {
            throw new OffsetOutOfRangeException(from, head.logStart(), head.head());
        }
    }

    private static void requireIndex(String field, int value, int size) {
        if (value < 0 || value >= size) {
            throw new InvalidInputException(field, "must be between 0 and " + (size - 1) + ", but is " + value);
        }
    }
}
