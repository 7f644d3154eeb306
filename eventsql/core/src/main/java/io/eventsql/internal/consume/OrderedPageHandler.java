package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import java.util.List;

/** Handles the events of a page one after the other, or in batches. Events of parked keys are parked. Thread-safe. */
record OrderedPageHandler(boolean inBatches, Attempts attempts, Failures failures) implements PageHandler {
    @Override
    public void handle(Assignment assignment, List<StoredEvent> page, HandlerTurn turn) {
        boolean mayContinue = true;
        for (int next = 0; next < page.size() && mayContinue; ) {
            boolean parked = assignment.isParked(page.get(next).key());
            int end = endOfRun(assignment, page, next, parked);
            List<StoredEvent> run = page.subList(next, end);
            mayContinue = parked
                    ? turn.withoutPermit(() -> failures.parkFollowing(assignment, run))
                    : attempts.handle(assignment, run, turn);
            next = end;
        }
        if (!mayContinue) { // no later event may be handled before those that are left, which the next owner fetches
            assignment.drain();
        }
    }

    private int endOfRun(Assignment assignment, List<StoredEvent> page, int first, boolean parked) {
        int end = first + 1;
        while ((inBatches || parked)
                && end < page.size()
                && assignment.isParked(page.get(end).key()) == parked) {
            end++;
        }
        return end;
    }

    @Override
    public void awaitIdle(Assignment assignment, HandlerTurn turn) {
        // Each page is handled when handle returns.
    }
}
