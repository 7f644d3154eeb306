package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.internal.sql.FetchedPage;
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
        HandlerClock clock = new HandlerClock();
        assignment.addClock(clock);
        do {
            assignment.awaitTurn();
            threads.acquirePermit(); // for each page anew: with few permits partitions take turns
            assignment.beginTurn();
            try {
                handleNext(assignment, clock);
            } catch (RuntimeException | Error e) { // an error of the library, not of the handler
                LOG.error("Internal error while handling {}; stopping it", assignment.name(), e);
                failures.stop(assignment, "internal error: " + e);
            } finally {
                threads.releasePermit();
            }
        } while (!assignment.endHandling());
        assignment.removeClock(clock);
        if (assignment.isEnding()) {
            heartbeats.requestRelease();
        }
    }

    private void handleNext(Assignment assignment, HandlerClock clock) {
        if (assignment.takeRedriveRequest()) {
            pages.awaitIdle(assignment);
            redrive.run(assignment, clock);
        }
        @Nullable FetchedPage page = assignment.takePage();
        if (page != null) {
            fetches.signal(); // there is room for another page
            pages.handle(assignment, page, clock);
        }
    }
}
