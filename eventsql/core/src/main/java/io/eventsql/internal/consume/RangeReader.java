package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.EventsMissingException;
import io.eventsql.InvalidInputException;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.ReadFrom;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.shard.Replica;
import io.eventsql.internal.shard.Replica.PageOf;
import io.eventsql.internal.shard.Replicas;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads a range of a partition without a consumer. Thread-safe. */
public final class RangeReader {
    private static final Logger LOG = LoggerFactory.getLogger(RangeReader.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final Replicas replicas;

    public RangeReader(Shards shards, StreamRegistry streams, Replicas replicas) {
        this.shards = shards;
        this.streams = streams;
        this.replicas = replicas;
    }

    /** See {@link io.eventsql.EventSql#read}. */
    public List<StoredEvent> read(EventPosition from, int maxEvents, long maxBytes, ReadFrom readFrom) {
        StreamSpec stream = streams.require(from.stream());
        requireIndex("position.shard", from.shard(), shards.size());
        Shard shard = shards.get(from.shard());
        try {
            int created = stream.partitions();
            requireIndex( // the stream may have grown
                    "position.partition",
                    from.partition(),
                    from.partition() < created ? created : shard.streams().countPartitions(stream));
            List<StoredEvent> events = readFrom == ReadFrom.REPLICA
                    ? readFromReplica(shard, stream, from, maxEvents, maxBytes)
                    : List.of();
            if (events.isEmpty()) {
                events = read(shard, stream, from, maxEvents, maxBytes);
            }
            if (events.isEmpty()) {
                streams.requireCurrent(stream.name()); // it may have been deleted
            }
            return events;
        } catch (OffsetOutOfRangeException e) {
            streams.requireCurrent(stream.name());
            throw e;
        } catch (SQLException e) {
            throw new EventSqlException("Reading events from " + from + " failed: " + e.getMessage(), e);
        }
    }

    /** Returns the events that the replica has, in a page without gaps; empty if there are none, or if it cannot be read. */
    private List<StoredEvent> readFromReplica(
            Shard shard, StreamSpec stream, EventPosition from, int maxEvents, long maxBytes) throws SQLException {
        Replica replica = replicas.of(shard).filter(Replica::isUsable).orElse(null);
        if (replica == null) {
            return List.of();
        }
        String incarnation = shard.incarnation(); // before the id
        OptionalInt streamId = shard.streams().findId(stream);
        if (streamId.isEmpty()) {
            return List.of();
        }
        Request request = new Request(from.partition(), from.offset(), maxBytes);
        try {
            Optional<List<FetchedPage>> pages = replica.fetch(
                    incarnation,
                    List.of(new PageOf(streamId.getAsInt(), from.partition())),
                    c -> shard.tables()
                            .fetch()
                            .execute(
                                    c, null, streamId.getAsInt(), stream, shard.number(), List.of(request), maxEvents));
            List<StoredEvent> events = new ArrayList<>();
            pages.ifPresent(found -> addReadable(found.getFirst(), events));
            return events;
        } catch (SQLException e) {
            LOG.debug("Reading from the primary of {} instead of its replica", shard, e);
            return List.of();
        }
    }

    private static List<StoredEvent> read(
            Shard shard, StreamSpec stream, EventPosition from, int maxEvents, long maxBytes) throws SQLException {
        List<StoredEvent> events = new ArrayList<>();
        long next = from.offset();
        long bytesLeft = maxBytes;
        while (events.size() < maxEvents && bytesLeft > 0) {
            FetchedPage page = fetchPage(shard, stream, from.partition(), next, maxEvents - events.size(), bytesLeft);
            long readableEnd = addReadable(page, events);
            if (readableEnd == next && events.isEmpty()) {
                requireReadable(
                        shard, stream, new EventPosition(from.stream(), from.shard(), from.partition(), next), page);
            }
            bytesLeft -= page.bytes();
            boolean isAdvanced = readableEnd > next;
            next = readableEnd;
            if (!isAdvanced || next < page.nextOffset() || page.endsAtHead()) {
                return events; // at the head, or before what cannot be read
            }
        }
        return events;
    }

    /**
     * Adds the events of a page up to the first one that is missing or cannot be decoded.
     *
     * @return its offset, or the end of the page
     */
    private static long addReadable(FetchedPage page, List<StoredEvent> events) {
        long expected = page.firstOffset();
        for (StoredEvent event : page.events()) {
            boolean isNext = event.offset() == expected || page.compacted().contains(expected, event.offset());
            if (!isNext || page.undecodable().containsKey(event.offset())) {
                return expected;
            }
            events.add(event);
            expected = event.offset() + 1;
        }
        return page.compacted().contains(expected, page.nextOffset()) ? page.nextOffset() : expected;
    }

    /** Fetches a page: by the stream's id that is remembered, so that most pages need one round trip. */
    private static FetchedPage fetchPage(
            Shard shard, StreamSpec stream, int partition, long from, int maxEvents, long maxBytes)
            throws SQLException {
        Request request = new Request(partition, from, maxBytes);
        String incarnation = shard.incarnation(); // before the id
        OptionalInt remembered = shard.streams().findId(stream);
        try {
            if (remembered.isPresent()) {
                FetchedPage page = fetch(shard, incarnation, remembered.getAsInt(), stream, request, maxEvents);
                if (!page.events().isEmpty()) { // otherwise the stream may have been created anew
                    return CompactedGaps.mark(shard, remembered.getAsInt(), partition, page);
                }
            }
        } catch (SQLException e) {
            if (!isOutdated(e, shard, incarnation)) {
                throw e;
            }
        }
        OptionalInt streamId = shard.streams().readId(stream);
        if (streamId.isEmpty()) {
            return FetchedPage.ofMissing(from, from);
        }
        FetchedPage page = fetch(shard, null, streamId.getAsInt(), stream, request, maxEvents);
        return CompactedGaps.mark(shard, streamId.getAsInt(), partition, page);
    }

    /** Returns whether an id was rejected that is not that of the stream any more. */
    private static boolean isOutdated(SQLException e, Shard shard, String incarnation) {
        try {
            return shard.recheckAfter(e, incarnation)
                    || SqlErrors.state(e).equals(SqlErrors.OTHER_STREAM)
                    || SqlErrors.state(e).equals(SqlErrors.OTHER_STORAGE);
        } catch (SQLException again) { // in recovery, say, where events can be read
            LOG.debug("The incarnation of {} could not be read", shard, again);
            return true;
        }
    }

    /** Fetches a page; if a row of it cannot be read, of half as many events, at last only that one, which cannot be decoded. */
    private static FetchedPage fetch(
            Shard shard, @Nullable String incarnation, int streamId, StreamSpec stream, Request request, int maxEvents)
            throws SQLException {
        for (int events = maxEvents; ; events /= 2) {
            int size = events;
            try {
                return shard.require()
                        .call(c -> shard.tables()
                                .fetch()
                                .execute(c, incarnation, streamId, stream, shard.number(), List.of(request), size))
                        .getFirst();
            } catch (SQLException e) {
                if (!FetchStatement.isCausedByRow(e)) {
                    throw e;
                } else if (size == 1) {
                    return FetchedPage.ofUnreadable(
                            new EventPosition(stream.name(), shard.number(), request.partition(), request.fromOffset()),
                            e);
                }
            }
        }
    }

    /** Throws the reason why the first event cannot be read, unless it is not stored yet. */
    private static void requireReadable(Shard shard, StreamSpec stream, EventPosition from, FetchedPage page)
            throws SQLException {
        UndecodableEventException undecodable = page.undecodable().get(from.offset());
        if (undecodable != null) {
            throw undecodable;
        }
        requireInRange(shard, stream, from); // after the page was read: the log does not start above it
        if (!page.isEmpty()) {
            throw new EventsMissingException(from, page.firstEventOffset());
        }
    }

    private static void requireInRange(Shard shard, StreamSpec stream, EventPosition from) throws SQLException {
        OptionalInt streamId = shard.streams().readId(stream);
        List<Head> heads = streamId.isEmpty()
                ? List.of()
                : shard.require()
                        .call(c -> shard.tables().partitions().heads(c, null, new int[] {streamId.getAsInt()}));
        if (!heads.isEmpty()) { // fewer since a growth was cancelled
            requireIndex("position.partition", from.partition(), heads.size());
        }
        Head head = heads.isEmpty() ? new Head(0, from.partition(), 0, 0) : heads.get(from.partition());
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
