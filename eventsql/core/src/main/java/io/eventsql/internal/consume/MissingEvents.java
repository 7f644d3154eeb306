package io.eventsql.internal.consume;

import io.eventsql.MissingEventPolicy;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.OffsetRange;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Applies the {@link MissingEventPolicy} of one member on one shard to ranges of missing events. Thread-safe. */
record MissingEvents(MissingEventPolicy policy, Failures failures, Listeners listeners) {
    private static final Logger LOG = LoggerFactory.getLogger(MissingEvents.class);

    /** Whether the partition stops before missing events. */
    boolean stops() {
        return policy == MissingEventPolicy.STOP;
    }

    /** Passes what compaction has removed from a page: counts as handled, without a report. */
    void passCompacted(Assignment assignment, FetchedPage page) {
        List<OffsetRange> gaps = page.compactedGaps();
        if (!gaps.isEmpty()) {
            failures.passCompacted(assignment, gaps);
        }
    }

    /**
     * Passes missing events, or stops the partition, before which all earlier events must be handled.
     *
     * @param next the offset after the missing events
     * @return whether the next event may be handled
     */
    boolean pass(Assignment assignment, long first, long next) {
        if (stops()) {
            failures.stop(
                    assignment,
                    "missing events [" + first + ", " + next + "): their rows are not in the log; seek to offset "
                            + next + " to continue after them");
            return false;
        }
        if (!failures.passMissing(assignment, first, next)) {
            return false;
        }
        LOG.warn(
                "{}: missing events [{}, {}): their rows are not in the log; continuing at offset {}",
                assignment.name(),
                first,
                next,
                next);
        listeners.call(l -> l.eventsMissing(assignment.name(), first, next));
        return true;
    }
}
