package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.OffsetRange;
import java.util.List;

/**
 * Handles the events of a page one after the other, or in batches. Events of parked keys are parked. A batch has no gap
 * except by compaction, and an event that cannot be decoded is not part of one. Erased events are passed. Thread-safe.
 */
record OrderedPageHandler(
        boolean inBatches,
        Attempts attempts,
        Failures failures,
        MissingEvents missing,
        ErasedEvents erased,
        HandlingWindow window)
        implements PageHandler {
    @Override
    public void handle(Assignment assignment, FetchedPage page, HandlerTurn turn) {
        missing.passCompacted(assignment, page);
        boolean mayContinue;
        try {
            mayContinue = (window.hasRoom(assignment, page.firstOffset())
                            || turn.withoutPermit(() -> window.await(assignment, page.firstOffset())))
                    && handleRuns(assignment, page, turn);
        } finally {
            assignment.releaseBytes(page.bytes());
        }
        if (!mayContinue) { // no later event may be handled before those that are left, which the next owner fetches
            assignment.drain();
        }
    }

    /** Returns whether the next page may be handled. */
    private boolean handleRuns(Assignment assignment, FetchedPage page, HandlerTurn turn) {
        List<StoredEvent> events = page.events();
        long expected = page.firstOffset();
        boolean mayContinue = true;
        for (int next = 0; next < events.size() && mayContinue; ) {
            long offset = events.get(next).offset();
            if (offset > expected) {
                mayContinue = passMissing(assignment, page, expected, offset, turn);
                expected = offset;
                continue;
            }
            int endOfErased = endOfErased(events, next);
            if (endOfErased > next) {
                erased.pass(assignment, events.subList(next, endOfErased));
                expected = events.get(endOfErased - 1).offset() + 1;
                next = endOfErased;
                mayContinue = !assignment.isEnding();
                continue;
            }
            boolean parked = assignment.parkedKeys().contains(events.get(next).key());
            int end = endOfRun(assignment, page, next, parked);
            List<StoredEvent> run = end == next + 1 ? List.of(events.get(next)) : events.subList(next, end);
            mayContinue = parked
                    ? turn.withoutPermit(() -> failures.parkFollowing(assignment, run))
                    : attempts.handle(assignment, run, turn);
            expected = run.getLast().offset() + 1;
            next = end;
        }
        if (mayContinue && expected < page.nextOffset()) {
            mayContinue = passMissing(assignment, page, expected, page.nextOffset(), turn);
        }
        return mayContinue;
    }

    private boolean passMissing(Assignment assignment, FetchedPage page, long first, long next, HandlerTurn turn) {
        for (OffsetRange range : page.compacted().outside(first, next)) {
            if (!turn.withoutPermit(() -> missing.pass(assignment, range.first(), range.next()))) {
                return false;
            }
        }
        return true;
    }

    private static int endOfErased(List<StoredEvent> events, int first) {
        int end = first;
        while (end < events.size()
                && events.get(end).isErased()
                && events.get(end).offset() == events.get(first).offset() + (end - first)) {
            end++;
        }
        return end;
    }

    private int endOfRun(Assignment assignment, FetchedPage page, int first, boolean parked) {
        List<StoredEvent> events = page.events();
        int end = first + 1;
        if (!parked && (!inBatches || assignment.undecodable().contains(events.get(first)))) {
            return end;
        }
        while (end < events.size() && isOfRun(assignment, page, events.get(end - 1), events.get(end), parked)) {
            end++;
        }
        return end;
    }

    private static boolean isOfRun(
            Assignment assignment, FetchedPage page, StoredEvent before, StoredEvent event, boolean parked) {
        long expected = before.offset() + 1;
        return (event.offset() == expected || page.compacted().contains(expected, event.offset()))
                && !event.isErased()
                && assignment.parkedKeys().contains(event.key()) == parked
                && (parked || !assignment.undecodable().contains(event));
    }

    @Override
    public void awaitIdle(Assignment assignment, HandlerTurn turn) {
        // Each page is handled when handle returns.
    }
}
