package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.sql.ConsumerTable.Handled;
import io.eventsql.internal.sql.ConsumerTable.Taken;
import io.eventsql.internal.sql.FetchStatement.Request;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * One partition that a member holds: what is fetched next, what waits for the handler, what is handled, what is
 * committed. Always {@code committed ≤ handled ≤ fetched}. Thread-safe: fetcher, handler and committer meet here.
 */
final class OwnedPartition {
    private final int partition;
    private final long epoch;
    private final long segmentSize;
    private long fetchedOffset;
    private long handledOffset;
    private long committedOffset;
    private @Nullable List<StoredEvent> waitingPage;
    /** Set by a signal or a full page, cleared when a fetch begins: a signal that comes during a fetch is kept. */
    private boolean mayHaveMore = true;

    private boolean handling;
    private boolean givenUp;

    OwnedPartition(Taken taken, long segmentSize) {
        this.partition = taken.partition();
        this.epoch = taken.epoch();
        this.segmentSize = segmentSize;
        this.fetchedOffset = taken.nextOffset();
        this.handledOffset = taken.nextOffset();
        this.committedOffset = taken.nextOffset();
    }

    int partition() {
        return partition;
    }

    long epoch() {
        return epoch;
    }

    synchronized long fetchedOffset() {
        return fetchedOffset;
    }

    /** Whether a page should be fetched: there may be events, and none wait for the handler. */
    synchronized boolean wantsPage() {
        return !givenUp && mayHaveMore && waitingPage == null;
    }

    synchronized boolean isIdle() {
        return !givenUp && !mayHaveMore;
    }

    synchronized boolean isGivenUp() {
        return givenUp;
    }

    /** There may be something to fetch. */
    synchronized void wake() {
        mayHaveMore = true;
    }

    /** Where to fetch from now; empty if no page is wanted. */
    synchronized Optional<Request> beginFetch() {
        if (!wantsPage()) {
            return Optional.empty();
        }
        mayHaveMore = false;
        return Optional.of(new Request(partition, fetchedOffset));
    }

    /**
     * Takes a fetched page, which was limited to {@code maxEvents} and {@code maxBytes}.
     *
     * @return whether the handler must be started: it is not at work
     */
    synchronized boolean fetched(List<StoredEvent> page, int maxEvents, long maxBytes) {
        if (page.isEmpty() || givenUp) {
            return false;
        }
        long bytes = 0;
        for (StoredEvent event : page) {
            bytes += event.value().length;
        }
        fetchedOffset += page.size();
        waitingPage = page;
        mayHaveMore |= page.size() >= maxEvents || bytes >= maxBytes || fetchedOffset % segmentSize == 0;
        boolean start = !handling;
        handling = true;
        return start;
    }

    /** The next page to handle; {@code null} if there is none: the handler's work ends, to be started again. */
    synchronized @Nullable List<StoredEvent> nextPage() {
        List<StoredEvent> page = givenUp ? null : waitingPage;
        waitingPage = null;
        handling = page != null;
        if (!handling) {
            notifyAll();
        }
        return page;
    }

    /** Everything below the offset is handled. */
    synchronized void handled(long nextOffset) {
        handledOffset = nextOffset;
    }

    /** What is handled and not committed; {@code null} if nothing is, or if the partition is no longer held. */
    synchronized @Nullable Handled toCommit() {
        return givenUp || handledOffset == committedOffset
                ? null
                : new Handled(partition, epoch, committedOffset, handledOffset);
    }

    synchronized void committed(long nextOffset) {
        committedOffset = nextOffset;
    }

    /** No further event is given to the handler, nothing more is committed. */
    synchronized void giveUp() {
        givenUp = true;
        waitingPage = null;
    }

    /** Waits until the handler is not at work on this partition. */
    synchronized boolean awaitNotHandling(long deadlineNanos) throws InterruptedException {
        while (handling) {
            long leftMs = (deadlineNanos - System.nanoTime()) / 1_000_000;
            if (leftMs <= 0) {
                return false;
            }
            wait(leftMs);
        }
        return true;
    }
}
