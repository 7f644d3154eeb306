package io.eventsql.reader;

import io.eventsql.reader.FetchedRange.FetchRequest;
import io.eventsql.reader.ReaderSql.StreamRow;
import io.eventsql.reader.ShardDatabase.Transaction;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Reads pages of partitions of one stream on one shard. A position that was reached in another incarnation of the database,
 * or that comes from elsewhere, is checked first; then pages, and the gaps in them. Immutable.
 */
final class PageReader {
    private final ReaderSql sql;
    private final FetchSql fetchSql;
    private final ReaderSettings settings;

    PageReader(ReaderSql sql, ReaderSettings settings) {
        this.sql = sql;
        this.fetchSql = new FetchSql(sql);
        this.settings = settings;
    }

    /** Returns a page for each request, in their order. */
    List<PartitionPage> read(Transaction transaction, String streamName, int shard, List<PageRequest> requests)
            throws SQLException {
        StreamRow stream = requireStream(transaction, streamName);
        PartitionPage[] pages = new PartitionPage[requests.size()];
        List<Integer> readable = new ArrayList<>();
        boolean[] isInLog = checkPositions(transaction, stream, shard, requests);
        for (int i = 0; i < pages.length; i++) {
            PageRequest request = requests.get(i);
            if (!isInLog[i] || request.position().offset() >= request.endOffset()) {
                pages[i] = request.emptyPage();
            } else {
                readable.add(i);
            }
        }
        if (!readable.isEmpty()) {
            List<FetchedRange> ranges = fetchSql.fetch(
                    transaction.connection(),
                    transaction.incarnation(),
                    stream,
                    readable.stream().map(i -> fetchRequest(requests.get(i))).toList(),
                    settings.pageEventsMax(),
                    settings.pageBytesMax());
            List<CompactedRanges> compacted = findCompacted(transaction, stream, ranges);
            for (int i = 0; i < ranges.size(); i++) {
                int index = readable.get(i);
                PageRequest request = requests.get(index);
                if (ranges.get(i).isMissing()) {
                    requireNeverUsed(transaction, request);
                    pages[index] = request.emptyPage();
                } else {
                    pages[index] = page(transaction, stream, request.position(), ranges.get(i), compacted.get(i));
                }
            }
        }
        return Arrays.asList(pages);
    }

    /**
     * Returns the positions at offsets of partitions of one stream on one shard, each with the event before it, if that is
     * in the log.
     */
    Map<StreamPartition, ReadPosition> positions(
            Transaction transaction, String streamName, Map<StreamPartition, Long> offsets) throws SQLException {
        StreamRow stream = requireStream(transaction, streamName);
        Map<StreamPartition, ReadPosition> positions = new TreeMap<>();
        List<FetchRequest> lastEvents = new ArrayList<>();
        offsets.forEach((partition, offset) -> {
            positions.put(partition, ReadPosition.at(offset));
            if (offset > 0) {
                lastEvents.add(new FetchRequest(partition, offset - 1, offset));
            }
        });
        List<FetchedRange> found =
                fetchSql.fetch(transaction.connection(), transaction.incarnation(), stream, lastEvents, 1, 1);
        for (FetchedRange range : found) {
            for (LogEvent event : range.events()) { // one, unless it was removed
                ReadPosition after = new ReadPosition(
                        event.offset() + 1, history(transaction, stream), event.offset(), event.publishedAt());
                positions.put(range.partition(), after);
            }
        }
        return positions;
    }

    private static StreamRow requireStream(Transaction transaction, String name) throws SQLException {
        return transaction.stream(name).orElseThrow(() -> new UnknownStreamException(name));
    }

    /** Returns what positions in a stream are compared with: a stream that is created again has another id. */
    private static String history(Transaction transaction, StreamRow stream) {
        return transaction.incarnation() + "/" + stream.id();
    }

    private static FetchRequest fetchRequest(PageRequest request) {
        return new FetchRequest(request.partition(), request.position().offset(), request.endOffset());
    }

    private List<CompactedRanges> findCompacted(Transaction transaction, StreamRow stream, List<FetchedRange> ranges)
            throws SQLException {
        if (ranges.stream().noneMatch(FetchedRange::hasGaps)) {
            return ranges.stream().map(range -> new CompactedRanges()).toList();
        }
        return sql.findCompacted(transaction.connection(), transaction.incarnation(), stream, ranges);
    }

    /**
     * Returns the readable events of a range: those up to the first one that is missing or cannot be decoded.
     *
     * @throws EventReaderException the reason, if that is the first one
     */
    private PartitionPage page(
            Transaction transaction, StreamRow stream, ReadPosition from, FetchedRange range, CompactedRanges compacted)
            throws SQLException {
        List<LogEvent> events = range.events();
        long expected = range.firstOffset();
        int readable = 0;
        while (readable < events.size()) {
            long offset = events.get(readable).offset();
            if (offset != expected && !compacted.contains(expected, offset)) {
                break;
            }
            expected = offset + 1;
            readable++;
        }
        if (readable == events.size() && compacted.contains(expected, range.nextOffset())) {
            expected = range.nextOffset();
        }
        if (expected == range.firstOffset() && (range.nextOffset() > expected || range.undecodable() != null)) {
            long found = events.isEmpty() ? range.nextOffset() : events.get(0).offset();
            throw unreadable(transaction, stream, range, expected, found);
        }
        LogEvent last = readable == 0 ? null : events.get(readable - 1);
        ReadPosition next = new ReadPosition(
                expected,
                history(transaction, stream),
                last == null ? from.lastOffset() : last.offset(),
                last == null ? from.lastPublishedAt() : last.publishedAt());
        boolean isAtHead = range.isAtHead() && expected == range.nextOffset();
        return new PartitionPage(range.partition(), events.subList(0, readable), next, isAtHead);
    }

    private EventReaderException unreadable(
            Transaction transaction, StreamRow stream, FetchedRange range, long offset, long found)
            throws SQLException {
        UndecodableEventException undecodable = range.undecodable();
        if (undecodable != null && undecodable.offset() == offset) {
            return undecodable;
        }
        // After the page was read: the log does not start above it.
        PartitionRange stored = sql.findRanges(
                        transaction.connection(),
                        transaction.incarnation(),
                        range.partition().shard(),
                        stream)
                .get(range.partition().partition());
        return stored != null && offset < stored.logStart()
                ? new OffsetOutOfRangeException(offset, stored)
                : new EventsMissingException(range.partition(), offset, found);
    }

    /**
     * Checks the positions that do not belong to the current incarnation.
     *
     * @return for each request whether its position is in the log; otherwise there is nothing to read yet: this is a
     *     standby that has not replayed it, or the partition was never used and does not exist
     * @throws OffsetOutOfRangeException if a position from elsewhere is not in the log
     * @throws HistoryLostException if the events before a position are not those that were read
     * @throws UnknownStreamException if there is no such partition, although the position says that it had events
     */
    private boolean[] checkPositions(Transaction transaction, StreamRow stream, int shard, List<PageRequest> requests)
            throws SQLException {
        boolean[] isInLog = new boolean[requests.size()];
        Arrays.fill(isInLog, true);
        String history = history(transaction, stream);
        Map<Integer, PartitionRange> ranges = null;
        List<PageRequest> remembered = new ArrayList<>();
        for (int i = 0; i < isInLog.length; i++) {
            PageRequest request = requests.get(i);
            if (history.equals(request.position().incarnation())) {
                continue;
            }
            if (ranges == null) {
                ranges = sql.findRanges(transaction.connection(), transaction.incarnation(), shard, stream);
            }
            PartitionRange range = ranges.get(request.partition().partition());
            if (range == null) {
                requireNeverUsed(transaction, request);
                isInLog[i] = false;
                continue;
            }
            isInLog[i] = isInRange(transaction, request, range);
            if (isInLog[i] && request.position().lastOffset() >= range.logStart()) {
                remembered.add(request);
            }
        }
        if (!remembered.isEmpty()) {
            compareLastEvents(transaction, stream, remembered);
        }
        return isInLog;
    }

    /**
     * Accepts that a partition does not exist: one that is added to a stream is removed again if the growth is cancelled
     * before it had an event, and a standby may not have it yet.
     *
     * @throws UnknownStreamException if it had events
     */
    private static void requireNeverUsed(Transaction transaction, PageRequest request) throws SQLException {
        if (request.position().offset() > 0 && !ReaderSql.isStandby(transaction.connection())) {
            throw new UnknownStreamException(request.partition());
        }
    }

    private static boolean isInRange(Transaction transaction, PageRequest request, PartitionRange range)
            throws SQLException {
        ReadPosition position = request.position();
        if (position.offset() < range.logStart()) {
            throw new OffsetOutOfRangeException(position.offset(), range);
        }
        if (position.offset() <= range.head()) {
            return true;
        }
        if (ReaderSql.isStandby(transaction.connection())) {
            return false;
        }
        if (position.lastOffset() >= 0) {
            throw new HistoryLostException(
                    request.partition(), position, "its next offset is " + range.head() + " now");
        }
        throw new OffsetOutOfRangeException(position.offset(), range);
    }

    /** Two histories that have differed once have no later event in common, so that the last one proves all before it. */
    private void compareLastEvents(Transaction transaction, StreamRow stream, List<PageRequest> requests)
            throws SQLException {
        List<FetchRequest> lastEvents = requests.stream()
                .map(request -> {
                    long offset = request.position().lastOffset();
                    return new FetchRequest(request.partition(), offset, offset + 1);
                })
                .toList();
        List<FetchedRange> found =
                fetchSql.fetch(transaction.connection(), transaction.incarnation(), stream, lastEvents, 1, 1);
        for (int i = 0; i < found.size(); i++) {
            @Nullable
            LogEvent event = found.get(i).events().stream().findFirst().orElse(null);
            ReadPosition position = requests.get(i).position();
            // Compaction may have removed it, which proves nothing.
            if (event != null && !Objects.equals(event.publishedAt(), position.lastPublishedAt())) {
                throw new HistoryLostException(
                        requests.get(i).partition(),
                        position,
                        "the event at offset " + event.offset() + " was published at " + event.publishedAt()
                                + ", not at " + position.lastPublishedAt());
            }
        }
    }
}
