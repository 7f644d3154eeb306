package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.UndecodableEventException;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * The range of a partition that a fetch has read, from the requested offset on, and its events in their order. An offset
 * of the range without an event is missing from the log, or below its start.
 *
 * @param nextOffset the offset after the range; {@code firstOffset} if there was nothing to read
 * @param endsAtHead whether the range has events and ends at the head; otherwise there may be more to read
 * @param bytes the size of the values, keys and headers; a character of text counts {@value #CHARACTER_BYTES}
 * @param undecodable the failures of events that could not be decoded, by offset; such an event has its position and
 *     value, and nothing that could not be decoded
 */
public record FetchedPage(
        long firstOffset,
        long nextOffset,
        boolean endsAtHead,
        List<StoredEvent> events,
        long bytes,
        Map<Long, UndecodableEventException> undecodable) {
    /** The most that a character takes in UTF-8: a page is never smaller than the database counts it. */
    public static final int CHARACTER_BYTES = 3;

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

    /** Returns whether there was nothing to read. */
    public boolean isEmpty() {
        return nextOffset == firstOffset;
    }

    /** Returns the offset of the first event, or the end of the range if there is none. */
    public long firstEventOffset() {
        return events.isEmpty() ? nextOffset : events.getFirst().offset();
    }

    /** Returns how many events follow each other without a gap, from the first one on. */
    public int gaplessEvents() {
        int count = 0;
        long expected = firstEventOffset();
        while (count < events.size() && events.get(count).offset() == expected + count) {
            count++;
        }
        return count;
    }
}
