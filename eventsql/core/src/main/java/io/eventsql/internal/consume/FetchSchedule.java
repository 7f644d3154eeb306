package io.eventsql.internal.consume;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * When the fetcher of a shard acts: on signals, for probes of streams that have just had events, and at every poll
 * interval. {@link #signal}, {@link #requestPoll} and {@link #catchUp} are called by any thread, the rest by the fetcher's alone.
 */
final class FetchSchedule {
    /**
     * Probes of a stream after its last events. Together they last longer than the pause between two signals
     * ({@code Settings.notifyInterval}), so that the next event is found by a probe, or its signal is sent at once.
     */
    private static final int PROBES = 4;

    /** The interval of polls while a replica lacks events. */
    private static final long CATCH_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(25);

    private final long pollNanos;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition signal = lock.newCondition();
    private boolean signalled;
    private volatile boolean pollRequested;
    /** Set by a signal for a replica, which may not have its events yet; cleared when a poll begins. */
    private volatile boolean catchingUp;

    private long polledAt = System.nanoTime();
    /** Streams that have just had events, and how many probes of them are left. */
    private final Map<Integer, Integer> recentlyActiveStreams = new HashMap<>();

    private final FetchPace pace = new FetchPace();
    private long fetchedAt = System.nanoTime();

    private boolean hasLeftEvents;
    private int lastEvents;
    private int lastStreams;

    FetchSchedule(Duration pollInterval) {
        this.pollNanos = pollInterval.toNanos();
    }

    /** There may be something to fetch, or room for it. */
    void signal() {
        lock.lock();
        try {
            signalled = true;
            signal.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Requests a poll of all heads now. */
    void requestPoll() {
        pollRequested = true;
        signal();
    }

    /** Requests a poll soon: there are events that the replica may lack. */
    void catchUp() {
        catchingUp = true;
    }

    private long pollNanos() {
        return catchingUp ? Math.min(pollNanos, CATCH_UP_NANOS) : pollNanos;
    }

    /** Waits for a signal, or until a probe or a poll is due, and for as long as this at most. */
    void await(long maxNanos) throws InterruptedException {
        long begun = System.nanoTime();
        lock.lockInterruptibly();
        try {
            while (!signalled) {
                long now = System.nanoTime();
                long untilDue = Math.min(polledAt + pollNanos(), nextProbeAt()) - now;
                long left = Math.min(untilDue, maxNanos - (now - begun));
                if (left <= 0) {
                    return;
                }
                signal.awaitNanos(left);
            }
            signalled = false;
        } finally {
            lock.unlock();
        }
    }

    private static boolean isDue(long nanoTime) {
        return nanoTime - System.nanoTime() <= 0;
    }

    // Polls

    boolean isPollDue() {
        return pollRequested || isDue(polledAt + pollNanos());
    }

    void beginPoll() {
        pollRequested = false;
        catchingUp = false;
        polledAt = System.nanoTime();
    }

    // Probes

    boolean isProbeDue() {
        return isDue(nextProbeAt());
    }

    /** When to probe the recently active streams; not before the next poll if there are none. */
    private long nextProbeAt() {
        return recentlyActiveStreams.isEmpty() ? polledAt + pollNanos() : fetchedAt + pace.probeNanos();
    }

    /** Counts a probe of each recently active stream and returns their ids; whatever the fetch is made for. */
    Set<Integer> beginProbe() {
        if (recentlyActiveStreams.isEmpty()) {
            return Set.of();
        }
        Set<Integer> probed = Set.copyOf(recentlyActiveStreams.keySet());
        recentlyActiveStreams.replaceAll((streamId, probes) -> probes - 1);
        recentlyActiveStreams.values().removeIf(probes -> probes == 0);
        return probed;
    }

    // Fetches

    /** Waits until the next fetch may begin: at once if the last one has left something. */
    void pace() throws InterruptedException {
        long early = fetchedAt + pace.intervalNanos() - System.nanoTime();
        if (!hasLeftEvents && early > 0) {
            TimeUnit.NANOSECONDS.sleep(early);
        }
    }

    void beginFetch() {
        fetchedAt = System.nanoTime();
        hasLeftEvents = false;
        lastEvents = 0;
        lastStreams = 0;
    }

    void recordPage(int streamId, int events, boolean hasMore) {
        lastEvents += events;
        hasLeftEvents |= hasMore;
        if (events > 0) {
            recentlyActiveStreams.put(streamId, PROBES);
        }
    }

    /** Records that a fetch has returned events of a stream. */
    void recordStream() {
        lastStreams++;
    }

    /** Ends a fetch that found nothing more. */
    void endFetch() {
        pace.record(fetchedAt, System.nanoTime(), lastEvents, lastStreams);
    }
}
