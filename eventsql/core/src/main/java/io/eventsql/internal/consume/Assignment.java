package io.eventsql.internal.consume;

import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.internal.sql.CompactedRanges;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import io.eventsql.internal.sql.OffsetRange;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One partition that a member owns, from taking to losing or releasing it: whose it is, until when its lease
 * runs, what is fetched, handled and committed. Always {@code committed ≤ handled ≤ fetched}. Thread-safe: fetcher,
 * handlers, committer and lease keeper share it.
 */
final class Assignment {
    /** Whether events may be handled; the transitions are drawn in the package's documentation. */
    private enum State {
        /** Events are handled. */
        ACTIVE,
        /**
         * No further event is handled, except in lanes those below an event that was begun; what is handled is committed,
         * then the partition is released.
         */
        DRAINING,
        /** No further event is handled; the failure that stops the partition is being stored. */
        STOPPING,
        /** No longer owned: nothing is handled, nothing is committed. */
        ENDED
    }

    /** What the thread that handles the partition's pages does. */
    private enum HandlerState {
        /** There is no such thread. */
        IDLE,
        /** It waits for its turn or for the next attempt of an event; no call of the handler has begun. */
        WAITING,
        /** It may be in a call of the handler. */
        RUNNING
    }

    private volatile Membership membership;
    private final int partition;
    private final long epoch;
    private final PartitionPages pages;
    private final PartitionProgress progress;
    private final FetchSize fetchSize;
    private final UndecodableEvents undecodable = new UndecodableEvents();
    private volatile CompactedRanges compacted = CompactedRanges.NONE;
    private boolean redriveRequested;
    private volatile boolean commitInDoubt;
    private final KeyQueues keyQueues;
    private final CircuitBreaker circuit;
    private volatile State state = State.ACTIVE;
    private volatile boolean isContinued;
    /** Opens when the partition is no longer ACTIVE; it never is again. */
    private final CountDownLatch ending = new CountDownLatch(1);

    private HandlerState handlerState = HandlerState.IDLE;
    private volatile long leaseEndNanos;
    /** While the partition drains, lanes still handle the events below. */
    private long laneEndOffset;

    private final RunningCalls calls = new RunningCalls();
    private final ParkedKeys parkedKeys;

    /**
     * @param parkedKeys as they are when the epoch is raised: only the owner changes them
     * @param leaseEndNanos when the lease expires, at the latest (nano time)
     * @param budget the memory for fetched events, shared by all partitions of the member
     */
    Assignment(
            Membership membership,
            TakenPartition taken,
            Set<String> parkedKeys,
            long leaseEndNanos,
            FetchBudget budget) {
        ConsumerSpec spec = membership.spec();
        this.membership = membership;
        this.keyQueues = new KeyQueues(spec.keyConcurrency());
        this.circuit = new CircuitBreaker(spec.circuitBreaker(), spec.retry());
        this.partition = taken.partition();
        this.epoch = taken.epoch();
        this.pages = new PartitionPages(partition, spec, budget, taken.nextOffset());
        this.progress = new PartitionProgress(taken);
        this.fetchSize = new FetchSize(spec.pageEvents(), taken.nextOffset());
        this.parkedKeys = new ParkedKeys(parkedKeys);
        this.leaseEndNanos = leaseEndNanos;
    }

    // Identity

    int partition() {
        return partition;
    }

    long epoch() {
        return epoch;
    }

    int consumerId() {
        return membership.consumerId();
    }

    /** Returns the stream's id on the shard. */
    int streamId() {
        return membership.streamId();
    }

    /** Returns the incarnation of the database in which the partition was taken. Fetches and commits count only there. */
    String incarnation() {
        return membership.incarnation();
    }

    /** Returns whether the partition was taken as this membership. */
    boolean isOf(Membership taker) {
        return membership.incarnation().equals(taker.incarnation());
    }

    /**
     * Lets a partition that drains or is being stopped be committed, and released or stopped, in another incarnation of the
     * database, whose history contains everything that was passed to the handler.
     */
    synchronized void continueAs(Membership other) {
        membership = other;
        isContinued = true;
    }

    /** Returns whether the partition is released because the database has another incarnation. */
    boolean isContinued() {
        return isContinued;
    }

    UUID memberId() {
        return membership.memberId();
    }

    ConsumerSpec spec() {
        return membership.spec();
    }

    ConsumerPartition name() {
        return membership.partition(partition);
    }

    // Lease and state

    void renewLease(long endNanos) {
        leaseEndNanos = endNanos;
    }

    /**
     * Whether an event may be handled now (rule 3, Handle): the lease has not expired by this process's clock, which was
     * read before the database's, so the member stops before others may take the partition.
     */
    boolean isLeaseValid() {
        return !hasEnded() && System.nanoTime() - leaseEndNanos < 0;
    }

    /** Whether no further event is handled. */
    boolean isEnding() {
        return state != State.ACTIVE;
    }

    /** Waits until no further event is handled, at most for the given time. */
    void awaitEnding(long nanos) throws InterruptedException {
        ending.await(nanos, TimeUnit.NANOSECONDS);
    }

    boolean isDraining() {
        return state == State.DRAINING;
    }

    boolean hasEnded() {
        return state == State.ENDED;
    }

    /** Begins to release the partition: no further event is handled; what is handled is still committed. */
    synchronized void drain() {
        if (state == State.ACTIVE) {
            state = State.DRAINING;
            pages.drop();
            ending.countDown();
        }
    }

    /**
     * Begins to stop the partition: no further event is handled.
     *
     * @return {@code false} if it is being stopped already, or has ended
     */
    synchronized boolean beginStop() {
        if (state == State.STOPPING || state == State.ENDED) {
            return false;
        }
        state = State.STOPPING;
        pages.drop();
        ending.countDown();
        return true;
    }

    /** Releases the partition instead: it could not be stopped, because the member closes. */
    synchronized void abortStop() {
        if (state == State.STOPPING) {
            state = State.DRAINING;
        }
    }

    /** Ends the assignment: no further event is handled, nothing more is committed. */
    synchronized void end() {
        if (state != State.ENDED) {
            state = State.ENDED;
            pages.end();
            ending.countDown();
        }
    }

    // Fetching

    synchronized long fetchedOffset() {
        return pages.fetchedOffset();
    }

    /** Whether to fetch: there may be events, and the handler has begun those of the last fetch. */
    synchronized boolean wantsPage() {
        return pages.isWanted() && !isEnding();
    }

    /** Whether a page is wanted and the fetch may return much. */
    synchronized boolean isBehind() {
        return wantsPage() && pages.isBehind();
    }

    synchronized boolean isIdle() {
        return !pages.mayHaveMore() && !isEnding();
    }

    /** There may be something to fetch. */
    synchronized void wake() {
        pages.wake();
    }

    /** There may be something to fetch; worth asking for only where nothing waits. */
    synchronized void probe() {
        if (!pages.isWaiting()) {
            pages.wake();
        }
    }

    /** Returns how many events to fetch, by the speed of the handler and the memory for them; at least a page. */
    synchronized int fetchEvents() {
        int pageEvents = spec().pageEvents();
        return pages.eventsInMemoryMax() <= pageEvents
                ? pageEvents
                : fetchSize.events(progress.handledOffset(), System.nanoTime(), pages.eventsInMemoryMax());
    }

    /**
     * Begins a fetch; returns what to fetch, or nothing if no page is wanted or its member has no memory for it now.
     *
     * @param maxEvents the maximum number of events
     */
    synchronized Optional<Request> beginFetch(int maxEvents) {
        if (!wantsPage()) {
            return Optional.empty();
        }
        fetchSize.beginFetch();
        return pages.beginFetch(maxEvents);
    }

    /** Ends a fetch that failed: the page is still wanted. */
    synchronized void abortFetch() {
        pages.abortFetch();
    }

    /**
     * Ends a fetch with its page.
     *
     * @return whether the handler must be started, because it is idle
     */
    synchronized boolean acceptPage(FetchedPage page) {
        if (isEnding()) {
            pages.discard();
            return false;
        }
        if (!pages.accept(page)) {
            return false;
        }
        undecodable.record(page.firstOffset(), page.nextOffset(), page.undecodable());
        return beginHandling();
    }

    /** Whether a fetch found a range without events: they are missing, unless the log starts above it. */
    synchronized boolean hasEmptyRange() {
        return pages.hasEmptyRange();
    }

    /**
     * Accepts such a range as missing: the log does not start above it.
     *
     * @return whether the handler must be started, because it is idle
     */
    synchronized boolean acceptEmptyRange() {
        return !isEnding() && pages.acceptEmptyRange() && beginHandling();
    }

    /** Releases memory of fetched events that are handled, or left to the next owner. */
    synchronized void releaseBytes(long bytes) {
        pages.exchangeBytes(bytes, 0);
    }

    /** Counts the memory of fetched events in another way. */
    synchronized void exchangeBytes(long before, long now) {
        pages.exchangeBytes(before, now);
    }

    /** Where compaction may have removed events, as far as that is known. */
    CompactedRanges compacted() {
        return compacted;
    }

    void remember(CompactedRanges ranges) {
        compacted = ranges;
    }

    /** The fetched events that cannot be decoded. */
    UndecodableEvents undecodable() {
        return undecodable;
    }

    // Handling

    private boolean beginHandling() {
        if (handlerState != HandlerState.IDLE) {
            return false;
        }
        handlerState = HandlerState.RUNNING;
        fetchSize.beginHandling(System.nanoTime());
        return true;
    }

    /**
     * Requests a redrive of parked events.
     *
     * @return whether the handler must be started, because it is idle
     */
    synchronized boolean requestRedrive() {
        redriveRequested = !isEnding();
        return redriveRequested && beginHandling();
    }

    /** Clears the request for a redrive; returns whether there was one. */
    synchronized boolean takeRedriveRequest() {
        boolean requested = redriveRequested && !isEnding();
        redriveRequested = false;
        return requested;
    }

    /** Takes the next page, whose memory the caller releases; returns {@code null} if there is none. */
    synchronized @Nullable FetchedPage takePage() {
        return pages.take();
    }

    /** Returns the last event passed to the handler; {@code null} if there is none, or if missing events follow it. */
    synchronized PartitionPages.@Nullable LastTaken lastTaken() {
        return pages.lastTaken();
    }

    /** Returns whether that event was appended after the partition was taken, as far as that is known. */
    synchronized boolean isLastTakenNew() {
        return pages.isLastTakenNew();
    }

    /** The handler waits: until {@link #beginTurn} it counts as not running. */
    synchronized void awaitTurn() {
        handlerState = HandlerState.WAITING;
    }

    synchronized void beginTurn() {
        handlerState = HandlerState.RUNNING;
    }

    /**
     * Ends the handler's run, unless there is more to do.
     *
     * @return whether it has ended
     */
    synchronized boolean endHandling() {
        if (!isEnding() && (pages.isWaiting() || redriveRequested)) {
            return false;
        }
        handlerState = HandlerState.IDLE;
        fetchSize.endHandling(progress.handledOffset(), System.nanoTime());
        return true;
    }

    /** Whether a handler may be running; not while it waits for its turn, which it then finds to be over. */
    synchronized boolean isHandling() {
        return handlerState == HandlerState.RUNNING || !keyQueues.isEmpty();
    }

    /** Pauses the partition after many failures in a row; shared by the partition's lanes. */
    CircuitBreaker circuit() {
        return circuit;
    }

    /**
     * Begins an event of a lane. A draining partition still handles what lies below an event that was begun in another lane:
     * the offset cannot be committed past a gap, and the next owner would handle again what is handled above it.
     *
     * @return {@code false} if the event is left to the next owner
     */
    synchronized boolean beginLaneEvent(long offset) {
        if (state == State.ACTIVE) {
            laneEndOffset = Math.max(laneEndOffset, offset + 1);
            return true;
        }
        return state == State.DRAINING && offset < laneEndOffset;
    }

    /** Leaves an event of a lane to the next owner, who also handles those above it: the partition drains. */
    synchronized void leaveLaneEvent(long offset) {
        drain();
        laneEndOffset = Math.min(laneEndOffset, offset);
    }

    /** The events waiting in lanes; used only when keys are handled in parallel. */
    KeyQueues keyQueues() {
        return keyQueues;
    }

    /** Records that the events from {@code first} up to but not {@code next} are handled. */
    synchronized void recordHandled(long first, long next) {
        undecodable.remove(first, next);
        progress.recordHandled(first, next);
    }

    /** Records that the events from {@code first} up to but not {@code next} are missing from the log. */
    synchronized void recordMissing(long first, long next) {
        progress.recordMissing(first, next);
    }

    /** Records the ranges of a page in which compaction may have removed events: there is nothing to handle. */
    synchronized void recordCompacted(List<OffsetRange> ranges) {
        for (OffsetRange range : ranges) {
            progress.recordMissing(range.first(), range.next());
            progress.recordHandled(range.first(), range.next());
        }
    }

    /** The calls of the handler in progress. */
    RunningCalls calls() {
        return calls;
    }

    ParkedKeys parkedKeys() {
        return parkedKeys;
    }

    // Committing

    /** Returns what is handled and not committed; {@code null} if nothing is, or if the assignment has ended. */
    synchronized @Nullable Handled uncommitted() {
        return hasEnded() || progress.handledOffset() == progress.committedOffset() ? null : progress();
    }

    /** Returns what is handled, even if all of it is committed: committing it again proves that the epoch still holds. */
    synchronized Handled progress() {
        return progress.commitUpTo(progress.handledOffset());
    }

    /** Returns what {@link #progress()} will be once these events are handled, too. */
    synchronized Handled progressWith(long first, long next) {
        return progress.commitUpTo(first == progress.handledOffset() ? next : progress.handledOffset());
    }

    /** Returns how many events are handled and not committed, in key-parallel mode also those that are handled ahead. */
    synchronized long uncommittedEvents() {
        return progress.uncommittedEvents();
    }

    /** Returns whether a commit of a handler's transaction has no answer, and may be stored, also later. */
    boolean isCommitInDoubt() {
        return commitInDoubt;
    }

    void setCommitInDoubt(boolean value) {
        commitInDoubt = value;
    }

    /** Records a committed offset. Within an epoch offsets only rise: an older one that was read late changes nothing. */
    synchronized void recordCommitted(long nextOffset) {
        progress.recordCommitted(nextOffset);
    }

    synchronized long committedOffset() {
        return progress.committedOffset();
    }

    /** Returns how many events the consumer had consumed at the committed offset. */
    synchronized long consumedEvents() {
        return progress.consumedEvents();
    }
}
