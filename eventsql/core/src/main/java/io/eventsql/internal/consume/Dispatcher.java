package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.FetchedPage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Passes the pages of a member to its handler: of each partition one page at a time, in order; at most {@link
 * ConsumerSpec#concurrency()} partitions at the same time, on virtual threads. Thread-safe.
 */
final class Dispatcher {
    private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);

    private static final long START_RETRY_MS = 1_000;

    private final Shard shard;
    private final PageHandler pages;
    private final Redrive redrive;
    private final Failures failures;
    private final HandlerThreads threads;
    private final FetchSchedule fetches;
    private final HeartbeatSchedule heartbeats;

    Dispatcher(
            Shard shard,
            PageHandler pages,
            Redrive redrive,
            Failures failures,
            HandlerThreads threads,
            FetchSchedule fetches,
            HeartbeatSchedule heartbeats) {
        this.shard = shard;
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
            HandlerTurn turn = HandlerTurn.ofPartition(assignment, threads.permits());
            threads.execute(() -> run(assignment, turn));
        } catch (Throwable e) { // the member is closed, or there is no memory for a thread
            releaseLater(assignment, e);
        }
    }

    /** Releases a partition that no thread handles: its next owner, which may be this member, fetches the page again. */
    private void releaseLater(Assignment assignment, Throwable e) {
        if (assignment.isEnding()) { // the member is closed
            releaseUnhandled(assignment);
            return;
        }
        try {
            LOG.error(
                    "No thread could be started to handle {}; releasing it in {} ms",
                    assignment.name(),
                    START_RETRY_MS,
                    e);
            shard.inBackground(START_RETRY_MS, () -> releaseUnhandled(assignment));
        } catch (Throwable again) { // too little memory also for the delay
            releaseUnhandled(assignment);
        }
    }

    private void releaseUnhandled(Assignment assignment) {
        assignment.drain();
        assignment.endHandling();
        heartbeats.requestRelease();
    }

    private void run(Assignment assignment, HandlerTurn turn) {
        try {
            handleAll(assignment, turn);
        } catch (Throwable e) { // the partition must not keep its lease without a thread
            turn.end();
            failures.abort(assignment, e);
            releaseUnhandled(assignment);
        }
        assignment.calls().remove(turn.clock());
        if (assignment.isEnding()) {
            heartbeats.requestRelease();
        }
    }

    /** Handles pages until there is none or the partition ends, which then may be released. */
    private void handleAll(Assignment assignment, HandlerTurn turn) {
        assignment.calls().add(turn.clock());
        do {
            turn.begin(); // for each page anew: with few permits partitions take turns
            try {
                handleNext(assignment, turn);
            } catch (Throwable e) { // an error of the library, not of the handler
                turn.end();
                failures.abort(assignment, e);
            } finally {
                turn.end();
            }
        } while (!assignment.endHandling());
    }

    private void handleNext(Assignment assignment, HandlerTurn turn) {
        if (assignment.takeRedriveRequest()) {
            pages.awaitIdle(assignment, turn);
            redrive.run(assignment, turn);
        }
        @Nullable FetchedPage page = assignment.takePage();
        if (page != null) {
            if (assignment.wantsPage()) { // there is room for another fetch
                fetches.signal();
            }
            pages.handle(assignment, page, turn);
        }
    }
}
