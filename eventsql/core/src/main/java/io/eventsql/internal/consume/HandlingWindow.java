package io.eventsql.internal.consume;

import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Limits how far a partition's handling runs ahead of its committed offset, and so how many events are handled again after
 * a crash. It waits while the first of them is still being handled, or while its offset cannot be committed. Thread-safe.
 */
final class HandlingWindow {
    private static final Logger LOG = LoggerFactory.getLogger(HandlingWindow.class);
    private static final long CHECK_MS = 20;
    private static final long REPORT_AFTER_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final int maxEventsAhead;
    private final OffsetCommitter committer;
    private final CloseSignal closeSignal;
    private final Listeners listeners;

    HandlingWindow(int maxEventsAhead, OffsetCommitter committer, CloseSignal closeSignal, Listeners listeners) {
        this.maxEventsAhead = maxEventsAhead;
        this.committer = committer;
        this.closeSignal = closeSignal;
        this.listeners = listeners;
    }

    /** Returns whether the event at the offset may be handled now. */
    boolean hasRoom(Assignment assignment, long offset) {
        return offset < end(assignment);
    }

    /** Returns the offset from which on an event must wait. */
    long end(Assignment assignment) {
        return assignment.committedOffset() + maxEventsAhead;
    }

    /**
     * Waits until the event at the offset may be handled.
     *
     * @return {@code false} if no further event may be handled
     */
    boolean await(Assignment assignment, long offset) {
        long waitingSince = System.nanoTime();
        boolean reported = false;
        while (offset >= end(assignment)) {
            commit(assignment);
            if (offset < end(assignment)) {
                break;
            }
            boolean isLong = System.nanoTime() - waitingSince >= REPORT_AFTER_NANOS;
            if (isLong && !reported && !assignment.isEnding()) { // the commit may have found that it is lost
                reported = true;
                reportBlocked(assignment, offset, assignment.committedOffset());
            }
            if (assignment.isEnding() || closeSignal.isClosingAfter(CHECK_MS)) {
                return false;
            }
        }
        if (reported) {
            LOG.info("{}: continuing at offset {}", assignment.name(), offset);
            listeners.call(l -> l.handlingContinued(assignment.name()));
        }
        return true;
    }

    private void reportBlocked(Assignment assignment, long offset, long committed) {
        LOG.warn(
                "{}: waiting at offset {}, {} events ahead of the committed offset {}, which is the maximum"
                        + " (maxEventsAhead); continuing when the event at that offset is handled",
                assignment.name(),
                offset,
                maxEventsAhead,
                committed);
        listeners.call(l -> l.handlingBlocked(assignment.name(), committed));
    }

    private void commit(Assignment assignment) {
        if (assignment.uncommitted() == null) {
            return;
        }
        try {
            committer.commit();
        } catch (SQLException e) { // the commit thread retries and reports it
            LOG.debug("Committing {} before its window's end failed; retrying", assignment.name(), e);
        }
    }
}
