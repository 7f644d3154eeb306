package io.eventsql.internal.consume;

import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import io.eventsql.internal.sql.OffsetTable.Handled;

/**
 * What is handled of a partition, and what of that is committed. Events beyond {@link #handledOffset} are handled only
 * where keys are handled in parallel. Not thread-safe.
 */
final class PartitionProgress {
    private final int partition;
    private final long epoch;
    private long handledOffset;
    private long committedOffset;
    private long consumedEvents;
    /** At most one range more than there are unfinished events. */
    private final OffsetRanges handledAhead = new OffsetRanges();
    /** Without an event in the log, missing or compacted, since the committed offset. */
    private final OffsetRanges missing = new OffsetRanges();

    PartitionProgress(TakenPartition taken) {
        this.partition = taken.partition();
        this.epoch = taken.epoch();
        this.handledOffset = taken.nextOffset();
        this.committedOffset = taken.nextOffset();
        this.consumedEvents = taken.consumedEvents();
    }

    /** Returns the offset below which everything is handled. */
    long handledOffset() {
        return handledOffset;
    }

    long committedOffset() {
        return committedOffset;
    }

    /** Returns what the database has counted at the committed offset: each commit adds its events, a seek keeps the count. */
    long consumedEvents() {
        return consumedEvents;
    }

    void recordHandled(long first, long next) {
        if (first > handledOffset) {
            handledAhead.add(first, next);
        } else {
            advanceHandled(next);
        }
    }

    private void advanceHandled(long next) {
        handledOffset = Math.max(handledOffset, next);
        if (!handledAhead.isEmpty()) {
            handledOffset = handledAhead.endOfRangeAt(handledOffset);
            handledAhead.removeBelow(handledOffset);
        }
    }

    void recordMissing(long first, long next) {
        missing.add(first, next);
    }

    void recordCommitted(long nextOffset) {
        if (nextOffset > committedOffset) {
            consumedEvents += commitUpTo(nextOffset).events();
            committedOffset = nextOffset;
        }
        advanceHandled(nextOffset);
        missing.removeBelow(committedOffset);
    }

    /** Returns how many events are handled and not committed. */
    long uncommittedEvents() {
        long ahead = handledAhead.count(handledOffset, Long.MAX_VALUE) - missing.count(handledOffset, Long.MAX_VALUE);
        return commitUpTo(handledOffset).events() + Math.max(0, ahead);
    }

    /** Returns a commit up to {@code next}, and of as many events as are not missing. */
    Handled commitUpTo(long next) {
        long events = next - committedOffset;
        if (!missing.isEmpty()) {
            events -= missing.count(committedOffset, next);
        }
        return new Handled(partition, epoch, committedOffset, next, events);
    }
}
