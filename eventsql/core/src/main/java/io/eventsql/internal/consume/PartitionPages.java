package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What is fetched of a partition: the pages that wait for the handler, the memory that fetched events take, and whether
 * there may be more. One fetch may bring several pages ({@link FetchSize}); the next one begins when the first of them is
 * taken. Not thread-safe.
 */
final class PartitionPages {
    /** The database counts the bytes of a page only where an event may be larger. */
    private static final long SMALL_EVENT_BYTES_MAX = 2_000;

    private final int partition;
    private final ConsumerSpec spec;
    private final FetchBudget budget;
    private long fetchedOffset;
    /** Set by a signal or a full page, cleared when a fetch begins: a signal that comes during a fetch is kept. */
    private boolean mayHaveMore = true;

    /** Whether the last page ended before the head. */
    private boolean isBehind;

    private boolean hasLargeEvents;
    /** The bytes of the pages being fetched, the pages that wait, and the events being handled. */
    private long heldBytes;

    private long requestedBytes;
    private int requestedEvents;
    /** The pages of a fetch, of which the first one was taken. */
    private final ArrayDeque<FetchedPage> rest = new ArrayDeque<>();
    /** What the fetch after that has returned. */
    private @Nullable FetchedPage waiting;
    /** A range that a fetch found without events: missing where it was not compacted, unless the log starts above it. */
    private @Nullable FetchedPage emptyRange;

    private @Nullable LastTaken lastTaken;
    /** The head, as the first fetch to reach it has seen it. */
    private long firstHead = Long.MAX_VALUE;

    /**
     * The last event that was passed to the handler. A history that has it, with the same time, has everything before it.
     */
    record LastTaken(long offset, Instant publishedAt) {}

    PartitionPages(int partition, ConsumerSpec spec, FetchBudget budget, long nextOffset) {
        this.partition = partition;
        this.spec = spec;
        this.budget = budget;
        this.fetchedOffset = nextOffset;
        budget.addPartition();
    }

    long fetchedOffset() {
        return fetchedOffset;
    }

    boolean isWaiting() {
        return waiting != null || !rest.isEmpty();
    }

    boolean hasEmptyRange() {
        return emptyRange != null;
    }

    /** Whether to fetch: there may be events, and the handler has begun those of the last fetch. */
    boolean isWanted() {
        return mayHaveMore && waiting == null && emptyRange == null;
    }

    boolean mayHaveMore() {
        return mayHaveMore;
    }

    void wake() {
        mayHaveMore = true;
    }

    /** Whether a fetch may return much: the last one has left events, or these are large. */
    boolean isBehind() {
        return isBehind || hasLargeEvents;
    }

    /**
     * Returns the maximum number of events of a fetch that leaves memory for two such of each partition of the member; less
     * than a page if there is no such memory.
     */
    long eventsInMemoryMax() {
        return hasLargeEvents ? 0 : budget.partitionBytes() / 2 / SMALL_EVENT_BYTES_MAX;
    }

    /**
     * Begins a fetch; returns nothing if the member has no memory for it now.
     *
     * @param maxEvents the maximum number of events
     */
    Optional<Request> beginFetch(int maxEvents) {
        long smallEventsBytes = Math.min(spec.pageBytes(), SMALL_EVENT_BYTES_MAX * maxEvents);
        requestedBytes = budget.reserve(hasLargeEvents ? spec.pageBytes() : smallEventsBytes, heldBytes);
        if (requestedBytes == 0) {
            return Optional.empty();
        }
        requestedEvents = maxEvents;
        heldBytes += requestedBytes;
        mayHaveMore = false;
        return Optional.of(new Request(partition, fetchedOffset, requestedBytes));
    }

    /** Ends a fetch that failed: the page is still wanted. */
    void abortFetch() {
        endRequest(0);
        mayHaveMore = true;
    }

    /** Ends a fetch whose page is not wanted any more. */
    void discard() {
        endRequest(0);
    }

    private void endRequest(long fetchedBytes) {
        long requested = requestedBytes;
        requestedBytes = 0;
        exchangeBytes(requested, fetchedBytes);
    }

    /**
     * Ends a fetch with its page. If that begins with a range without events that was not compacted, the range is kept until
     * {@link #acceptEmptyRange}.
     *
     * @return whether a page waits for the handler
     */
    boolean accept(FetchedPage page) {
        isBehind = !page.isEmpty() && !page.endsAtHead();
        if (!isBehind && firstHead == Long.MAX_VALUE) {
            firstHead = page.isEmpty() ? fetchedOffset : page.nextOffset();
        }
        if (page.isEmpty() || page.firstOffset() != fetchedOffset) {
            discard();
            return false;
        }
        long firstEvent = page.firstEventOffset();
        if (firstEvent != fetchedOffset && !page.compacted().contains(fetchedOffset, firstEvent)) {
            discard();
            emptyRange = FetchedPage.ofMissing(fetchedOffset, firstEvent).withCompacted(page.compacted());
            return false;
        }
        endRequest(page.bytes());
        hasLargeEvents = page.bytes() * 2 > SMALL_EVENT_BYTES_MAX * requestedEvents;
        mayHaveMore |= !page.endsAtHead();
        setWaiting(page);
        return true;
    }

    /**
     * Accepts the empty range: its events are missing, because the log does not start above it.
     *
     * @return {@code false} if there is none
     */
    boolean acceptEmptyRange() {
        FetchedPage range = emptyRange;
        if (range == null) {
            return false;
        }
        emptyRange = null;
        mayHaveMore = true;
        setWaiting(range);
        return true;
    }

    private void setWaiting(FetchedPage page) {
        waiting = page;
        fetchedOffset = page.nextOffset();
    }

    /** Takes the next page, to be handled; {@code null} if none waits. The caller releases its memory. */
    @Nullable
    FetchedPage take() {
        if (rest.isEmpty() && waiting != null) {
            rest.addAll(waiting.split(spec.pageEvents()));
            waiting = null;
        }
        FetchedPage page = rest.poll();
        if (page != null) {
            lastTaken = lastEvent(page);
        }
        return page;
    }

    private static @Nullable LastTaken lastEvent(FetchedPage page) {
        if (page.events().isEmpty()) {
            return null;
        }
        StoredEvent last = page.events().getLast();
        return last.offset() + 1 == page.nextOffset() ? new LastTaken(last.offset(), last.publishedAt()) : null;
    }

    /** Returns the last event passed to the handler; {@code null} if there is none, or if missing events follow it. */
    @Nullable
    LastTaken lastTaken() {
        return lastTaken;
    }

    /**
     * Returns whether the last event passed to the handler was appended after the partition was taken. A history that has
     * it has what was stored before, the consumer among it.
     */
    boolean isLastTakenNew() {
        return lastTaken != null && lastTaken.offset() >= firstHead;
    }

    /** Drops the pages that wait, to be fetched again. */
    void drop() {
        if (waiting != null) {
            rest.add(waiting);
            waiting = null;
        }
        if (!rest.isEmpty()) {
            fetchedOffset = rest.getFirst().firstOffset();
            rest.forEach(page -> exchangeBytes(page.bytes(), 0));
            rest.clear();
        }
        emptyRange = null;
        mayHaveMore = true;
    }

    /** Replaces the memory that events are counted with. */
    void exchangeBytes(long before, long now) {
        heldBytes += now - before;
        budget.replace(before, now);
    }

    /** The partition is no longer owned. */
    void end() {
        drop();
        budget.removePartition();
    }
}
