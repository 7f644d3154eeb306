package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.LeaseTable.Taken;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One partition that a member holds: what is fetched next, what waits for the handler, what is handled, what is
 * committed. Always {@code committed ≤ handled ≤ fetched}. Thread-safe: fetcher, handlers, committer and lease keeper
 * meet here.
 */
final class OwnedPartition {
    private final int partition;
    private final long epoch;
    private final long segmentSize;
    private long fetchedOffset;
    private long handledOffset;
    private long committedOffset;
    /** Handled before what is in front of them, which only happens when keys are handled in parallel: first → next. */
    private final Map<Long, Long> handledAhead = new HashMap<>();

    private @Nullable List<StoredEvent> waitingPage;
    /** Set by a signal or a full page, cleared when a fetch begins: a signal that comes during a fetch is kept. */
    private boolean mayHaveMore = true;

    private boolean handling;
    /** It is its turn to be handled, but other partitions are at the moment. */
    private boolean waitingForTurn;
    /** Events handled at this moment by lanes of keys, and waiting in them. */
    private int inLanes;

    private boolean redriveWanted;
    private @Nullable KeyLanes lanes;
    private volatile boolean draining;
    private volatile boolean stopping;
    private volatile boolean givenUp;
    private volatile long heldUntilNanos;
    private final Set<HandlerClock> clocks = ConcurrentHashMap.newKeySet();
    private final Set<String> parkedKeys;

    /**
     * @param parkedKeys as they are while the epoch is raised: only the holder changes them
     * @param heldUntilNanos when the lease expires, at the latest (nano time)
     */
    OwnedPartition(Taken taken, long segmentSize, Set<String> parkedKeys, long heldUntilNanos) {
        this.partition = taken.partition();
        this.epoch = taken.epoch();
        this.segmentSize = segmentSize;
        this.fetchedOffset = taken.nextOffset();
        this.handledOffset = taken.nextOffset();
        this.committedOffset = taken.nextOffset();
        this.parkedKeys = ConcurrentHashMap.newKeySet();
        this.parkedKeys.addAll(parkedKeys);
        this.heldUntilNanos = heldUntilNanos;
    }

    int partition() {
        return partition;
    }

    long epoch() {
        return epoch;
    }

    // The lease

    void renewedUntil(long nanos) {
        heldUntilNanos = nanos;
    }

    /** Whether the lease has not expired, by this process's clock, which is never later than the database's. */
    boolean isHeld() {
        return !givenUp && System.nanoTime() - heldUntilNanos < 0;
    }

    /** Whether events may ever be given to the handler. */
    boolean isEnding() {
        return givenUp || draining || stopping;
    }

    boolean isGivenUp() {
        return givenUp;
    }

    boolean isDraining() {
        return draining;
    }

    /** No further event is given to the handler; what it has handled is still committed. */
    synchronized void drain() {
        draining = true;
        waitingPage = null;
    }

    /**
     * No further event is given to the handler: the partition is about to be stopped.
     *
     * @return {@code false} if that had been said before
     */
    synchronized boolean beginStop() {
        boolean first = !stopping;
        stopping = true;
        waitingPage = null;
        return first;
    }

    /** No further event is given to the handler, nothing more is committed. */
    synchronized void giveUp() {
        givenUp = true;
        waitingPage = null;
    }

    // Fetching

    synchronized long fetchedOffset() {
        return fetchedOffset;
    }

    /** Whether a page should be fetched: there may be events, and none wait for the handler. */
    synchronized boolean wantsPage() {
        return mayHaveMore && waitingPage == null && !isEnding();
    }

    synchronized boolean isIdle() {
        return !mayHaveMore && !isEnding();
    }

    /** There may be something to fetch. */
    synchronized void wake() {
        mayHaveMore = true;
    }

    /** There may be something to fetch; worth asking for only where nothing waits. */
    synchronized void probe() {
        mayHaveMore |= waitingPage == null;
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
        if (page.isEmpty() || isEnding() || page.getFirst().offset() != fetchedOffset) {
            return false;
        }
        long bytes = 0;
        for (StoredEvent event : page) {
            bytes += event.value().length;
        }
        fetchedOffset += page.size();
        waitingPage = page;
        mayHaveMore |= page.size() >= maxEvents || bytes >= maxBytes || fetchedOffset % segmentSize == 0;
        return beginHandling();
    }

    /** Forgets the page that waits: the log may have another history now. */
    synchronized void forgetPage() {
        if (waitingPage != null) {
            fetchedOffset = waitingPage.getFirst().offset();
            waitingPage = null;
        }
        mayHaveMore = true;
    }

    // Handling

    private boolean beginHandling() {
        boolean start = !handling;
        handling = true;
        return start;
    }

    /**
     * Events set aside are to be handled again.
     *
     * @return whether the handler must be started: it is not at work
     */
    synchronized boolean wantRedrive() {
        redriveWanted = !isEnding();
        return redriveWanted && beginHandling();
    }

    /** Whether events set aside are to be handled again; says so once. */
    synchronized boolean takeRedriveWanted() {
        boolean wanted = redriveWanted && !isEnding();
        redriveWanted = false;
        return wanted;
    }

    /** The next page to handle; {@code null} if there is none now. */
    synchronized @Nullable List<StoredEvent> nextPage() {
        List<StoredEvent> page = isEnding() ? null : waitingPage;
        waitingPage = null;
        return page;
    }

    /**
     * The handler's work ends, to be started again, unless there is more to do.
     *
     * @return whether it ends
     */
    synchronized boolean endHandling() {
        if (!isEnding() && (waitingPage != null || redriveWanted)) {
            return false;
        }
        handling = false;
        return true;
    }

    /** Whether a handler may be at work; not while it waits for its turn, for what it would find then is not yet begun. */
    synchronized boolean isHandling() {
        return (handling && !waitingForTurn) || inLanes > 0;
    }

    synchronized void awaitsTurn() {
        waitingForTurn = true;
    }

    synchronized void hasTurn() {
        waitingForTurn = false;
    }

    /** The lanes in which keys are handled in parallel; made when first asked for. */
    synchronized KeyLanes lanes(Supplier<KeyLanes> factory) {
        if (lanes == null) {
            lanes = factory.get();
        }
        return lanes;
    }

    synchronized void laneTakes() {
        inLanes++;
    }

    synchronized void laneDone() {
        inLanes--;
    }

    /** The events from {@code first} up to but not {@code next} are handled. */
    synchronized void handled(long first, long next) {
        if (first > handledOffset) {
            handledAhead.put(first, next);
            return;
        }
        handledOffset = Math.max(handledOffset, next);
        if (!handledAhead.isEmpty()) {
            for (Long after = handledAhead.remove(handledOffset);
                    after != null;
                    after = handledAhead.remove(handledOffset)) {
                handledOffset = after;
            }
        }
    }

    HandlerClock newClock() {
        HandlerClock clock = new HandlerClock();
        clocks.add(clock);
        return clock;
    }

    void endClock(HandlerClock clock) {
        clocks.remove(clock);
    }

    /** How long the longest running handler call has been running, in nanoseconds; 0 if none is. */
    long longestCallNanos() {
        return clocks.stream().mapToLong(HandlerClock::runningNanos).max().orElse(0);
    }

    // Keys that are held back

    boolean isParked(@Nullable String key) {
        return key != null && !parkedKeys.isEmpty() && parkedKeys.contains(key);
    }

    void parked(String key) {
        parkedKeys.add(key);
    }

    void freed(List<String> keys) {
        keys.forEach(parkedKeys::remove);
    }

    int parkedKeys() {
        return parkedKeys.size();
    }

    // Committing

    /** What is handled and not committed; {@code null} if nothing is, or if the partition is no longer held. */
    synchronized @Nullable Handled toCommit() {
        return givenUp || handledOffset == committedOffset ? null : progress();
    }

    /** What is handled, even if that is nothing new: a commit of it proves that the partition is still held. */
    synchronized Handled progress() {
        return new Handled(partition, epoch, committedOffset, handledOffset);
    }

    /** As {@link #progress()}, as it will be once these events are handled, too. */
    synchronized Handled progressWith(long first, long next) {
        return new Handled(partition, epoch, committedOffset, first == handledOffset ? next : handledOffset);
    }

    /** Within an epoch offsets only rise: who comes late with an older one, read meanwhile, changes nothing. */
    synchronized void committed(long nextOffset) {
        committedOffset = Math.max(committedOffset, nextOffset);
        handledOffset = Math.max(handledOffset, nextOffset);
    }

    synchronized long committedOffset() {
        return committedOffset;
    }
}
