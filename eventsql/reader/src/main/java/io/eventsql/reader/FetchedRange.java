package io.eventsql.reader;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The range of a partition that a fetch has read, with its events. An offset of it without an event was compacted, is missing
 * from the log, or is below its start. Filled by one thread.
 */
final class FetchedRange {
    private final StreamPartition partition;
    private final long firstOffset;
    private final long endOffset;
    private final int eventsMax;
    private final List<LogEvent> events = new ArrayList<>();

    private long nextOffset;
    private long bytesLeft;
    private boolean isAtHead = true;
    private boolean isComplete;
    private boolean isMissing;
    private @Nullable UndecodableEventException undecodable;

    FetchedRange(FetchRequest request, int eventsMax, long bytesMax) {
        this.partition = request.partition();
        this.firstOffset = request.fromOffset();
        this.endOffset = request.endOffset();
        this.eventsMax = eventsMax;
        this.bytesLeft = bytesMax;
        this.nextOffset = firstOffset;
    }

    /** What to fetch of a partition: events from an offset on, and below another one. */
    record FetchRequest(StreamPartition partition, long fromOffset, long endOffset) {}

    StreamPartition partition() {
        return partition;
    }

    long firstOffset() {
        return firstOffset;
    }

    /** Returns the offset after the range; the first one if there was nothing to read. */
    long nextOffset() {
        return nextOffset;
    }

    List<LogEvent> events() {
        return events;
    }

    /** Returns whether there was no further event. */
    boolean isAtHead() {
        return isAtHead;
    }

    /** Returns whether the range has offsets without an event. */
    boolean hasGaps() {
        return nextOffset - firstOffset != events.size();
    }

    /** Returns whether the partition does not exist. */
    boolean isMissing() {
        return isMissing;
    }

    /** Returns the failure of the event at {@link #nextOffset}, if that ends the range. */
    @Nullable
    UndecodableEventException undecodable() {
        return undecodable;
    }

    /** Returns whether an event at this offset, of this size, belongs to the range; otherwise the range ends before it. */
    boolean accepts(long offset, long bytes) {
        if (isComplete || offset < firstOffset) {
            return false;
        }
        isAtHead = false;
        if (offset >= endOffset) {
            nextOffset = endOffset;
            isComplete = true;
        } else if (events.size() == eventsMax || bytesLeft <= 0) {
            isComplete = true;
        }
        bytesLeft -= bytes;
        return !isComplete;
    }

    /** Records that the partition does not exist. */
    void markMissing() {
        isMissing = true;
    }

    /** Adds an event that was accepted. */
    void add(LogEvent event) {
        events.add(event);
        nextOffset = event.offset() + 1;
    }

    /** Ends the range before an event that was accepted. */
    void endBefore(UndecodableEventException failure) {
        nextOffset = failure.offset();
        undecodable = failure;
        isComplete = true;
    }

    /** Ends the range before a row that is damaged, as if the next offset were its first. */
    void endBeforeDamage(IllegalArgumentException cause) {
        if (accepts(nextOffset, 0)) {
            endBefore(new UndecodableEventException(partition, nextOffset, cause));
        }
    }

    /** Moves the end of the range past offsets without an event. */
    void extendTo(long offset) {
        if (!isComplete) {
            nextOffset = Math.min(offset, endOffset);
        }
    }

    /** Ends the range where the database has stopped: at the head if there are events. */
    void endAt(long offset) {
        if (!isComplete) {
            isAtHead = !events.isEmpty();
            extendTo(offset);
            isComplete = true;
        }
    }
}
