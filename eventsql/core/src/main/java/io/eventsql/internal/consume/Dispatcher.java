package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Passes the pages of a member to its handler: of each partition one page at a time, in order; at most {@link
 * ConsumerSpec#concurrency()} partitions at the same time, on virtual threads. Thread-safe.
 */
final class Dispatcher {
    private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);

    private final PageHandler pages;
    private final Redrive redrive;
    private final Failures failures;
    private final HandlerThreads threads;
    private final FetchSchedule fetches;
    private final HeartbeatSchedule heartbeats;

    Dispatcher(
            PageHandler pages,
            Redrive redrive,
            Failures failures,
            HandlerThreads threads,
            FetchSchedule fetches,
            HeartbeatSchedule heartbeats) {
        this.pages = pages;
        this.redrive = redrive;
        this.failures = failures;
        this.threads = threads;
        this.fetches = fetches;
        this.heartbeats = heartbeats;
    }

    /** Starts the handler on a partition that has work and whose handler is idle. */
    void start(Assignment assignment) {
        try {
            threads.execute(() -> handleAll(assignment));
        } catch (RejectedExecutionException e) { // the member is closed
            LOG.debug("Not handling {}: its member is closed", assignment.name(), e);
            assignment.end();
            assignment.endHandling();
        }
    }

    /** Handles pages until there is none or the partition ends, which then may be released. */
    private void handleAll(Assignment assignment) {
        HandlerTurn turn = HandlerTurn.ofPartition(assignment, threads.permits());
        assignment.addClock(turn.clock());
        do {
            turn.begin(); // for each page anew: with few permits partitions take turns
            try {
                handleNext(assignment, turn);
            } catch (RuntimeException | Error e) { // an error of the library, not of the handler
                LOG.error("Internal error while handling {}; stopping it", assignment.name(), e);
                failures.stop(assignment, "internal error: " + e);
            } finally {
                turn.end();
            }
        } while (!assignment.endHandling());
        assignment.removeClock(turn.clock());
        if (assignment.isEnding()) {
            heartbeats.requestRelease();
        }
    }

    private void handleNext(Assignment assignment, HandlerTurn turn) {
        if (assignment.takeRedriveRequest()) {
            pages.awaitIdle(assignment, turn);
            redrive.run(assignment, turn);
        }
        @Nullable List<StoredEvent> page = assignment.takePage();
        if (page != null) {
            fetches.signal(); // there is room for another page
            pages.handle(assignment, page, turn);
        }
    }
}
