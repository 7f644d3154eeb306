package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.UndecodableEventException;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The range of a partition that a fetch has read, from the requested offset on, and its events in their order. An offset
 * of the range without an event was compacted, is missing from the log, or is below its start.
 *
 * @param nextOffset the offset after the range; {@code firstOffset} if there was nothing to read
 * @param endsAtHead whether the range has events and ends at the head; otherwise there may be more to read
 * @param bytes the size of the values, keys and headers; a character of text counts {@value #CHARACTER_BYTES}
 * @param undecodable the failures of events that could not be decoded, by offset; such an event has its position and
 *     value, and nothing that could not be decoded
 * @param compacted where compaction may have removed events
 */
public record FetchedPage(
        long firstOffset,
        long nextOffset,
        boolean endsAtHead,
        List<StoredEvent> events,
        long bytes,
        Map<Long, UndecodableEventException> undecodable,
        CompactedRanges compacted) {
    /** The most that a character takes in UTF-8: a page is never smaller than the database counts it. */
    public static final int CHARACTER_BYTES = 3;

    /** Creates a page of which it is not known that events were compacted. */
    public FetchedPage(
            long firstOffset,
            long nextOffset,
            boolean endsAtHead,
            List<StoredEvent> events,
            long bytes,
            Map<Long, UndecodableEventException> undecodable) {
        this(firstOffset, nextOffset, endsAtHead, events, bytes, undecodable, CompactedRanges.NONE);
    }

    /** Returns a range in which every event is missing. */
    public static FetchedPage ofMissing(long firstOffset, long nextOffset) {
        return new FetchedPage(firstOffset, nextOffset, false, List.of(), 0, Map.of());
    }

    /** Returns a page with an event of which nothing could be read, not even its key. */
    public static FetchedPage ofUnreadable(EventPosition position, SQLException cause) {
        long offset = position.offset();
        return new FetchedPage(
                offset,
                offset + 1,
                false,
                List.of(new StoredEvent(position, null, new byte[0], Map.of(), Instant.EPOCH)),
                0,
                Map.of(offset, new UndecodableEventException(position, null, cause)));
    }

    /** Returns the page with the ranges in which compaction may have removed events. */
    public FetchedPage withCompacted(CompactedRanges ranges) {
        return new FetchedPage(firstOffset, nextOffset, endsAtHead, events, bytes, undecodable, ranges);
    }

    /** Returns the page with copies of its events, which share nothing that can be changed. */
    public FetchedPage copy() {
        List<StoredEvent> copies = new ArrayList<>(events.size());
        for (StoredEvent event : events) {
            copies.add(new StoredEvent(
                    event.position(),
                    event.key(),
                    event.value().clone(),
                    event.headers(),
                    event.publishedAt(),
                    event.valueState()));
        }
        return new FetchedPage(firstOffset, nextOffset, endsAtHead, copies, bytes, undecodable, compacted);
    }

    /**
     * Returns the page in parts, each with at most that many events. They share its memory in proportion to their events.
     */
    public List<FetchedPage> split(int maxEvents) {
        if (events.size() <= maxEvents) {
            return List.of(this);
        }
        List<FetchedPage> parts = new ArrayList<>((events.size() - 1) / maxEvents + 1);
        long first = firstOffset;
        long bytesLeft = bytes;
        for (int begin = 0; begin < events.size(); begin += maxEvents) {
            int end = Math.min(begin + maxEvents, events.size());
            boolean isLast = end == events.size();
            long next = isLast ? nextOffset : events.get(end - 1).offset() + 1;
            long partBytes = isLast ? bytesLeft : bytes / events.size() * (end - begin);
            parts.add(new FetchedPage(
                    first, next, isLast && endsAtHead, events.subList(begin, end), partBytes, undecodable, compacted));
            first = next;
            bytesLeft -= partBytes;
        }
        return parts;
    }

    /** Returns whether the range has offsets without an event. */
    public boolean hasGaps() {
        return nextOffset - firstOffset != events.size();
    }

    /** Returns whether compaction may have removed the events of all offsets without one. */
    public boolean hasOnlyCompactedGaps() {
        long expected = firstOffset;
        for (StoredEvent event : events) {
            if (event.offset() != expected && !compacted.contains(expected, event.offset())) {
                return false;
            }
            expected = event.offset() + 1;
        }
        return expected == nextOffset || compacted.contains(expected, nextOffset);
    }

    /** Returns the ranges without events that compaction may have removed. */
    public List<OffsetRange> compactedGaps() {
        if (!hasGaps()) {
            return List.of();
        }
        List<OffsetRange> gaps = new ArrayList<>();
        long expected = firstOffset;
        for (StoredEvent event : events) {
            if (event.offset() != expected) {
                gaps.addAll(compacted.within(expected, event.offset()));
            }
            expected = event.offset() + 1;
        }
        if (expected != nextOffset) {
            gaps.addAll(compacted.within(expected, nextOffset));
        }
        return gaps;
    }

    /** Returns the part of a page without gaps that is below an offset, as if the log ended there. */
    public FetchedPage before(long end) {
        if (nextOffset <= end) {
            return this;
        }
        int kept = (int) Math.max(0, end - firstOffset);
        if (kept == 0) {
            return new FetchedPage(firstOffset, firstOffset, false, List.of(), 0, Map.of());
        }
        return new FetchedPage(
                firstOffset, end, true, events.subList(0, kept), bytes / events.size() * kept, undecodable, compacted);
    }

    /** Returns whether there was nothing to read. */
    public boolean isEmpty() {
        return nextOffset == firstOffset;
    }

    /** Returns the offset of the first event, or the end of the range if there is none. */
    public long firstEventOffset() {
        return events.isEmpty() ? nextOffset : events.getFirst().offset();
    }
}
