package io.eventsql.internal.append;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/**
 * How long an append thread waits for more calls before it takes a batch; at most one thread of a shard does, and takes all
 * that has come. All methods are called with the lock held.
 *
 * <p>A thread that has just completed many calls briefly waits for their callers to call again: a batch with only the first of
 * them would leave all others to the next commit, so that every second batch would be almost empty. While the database is
 * busy, or while calls come often, it waits for longer, unless a caller is blocked, see {@link CommitPace}. A single caller
 * never waits.
 */
final class Gathering {
    /** The maximum time for which a thread waits for the callers of its last batch to call again. */
    private static final long GATHER_NANOS_MAX = TimeUnit.MICROSECONDS.toNanos(300);
    /** The wait is also limited to the duration of the last append divided by this. */
    private static final int GATHER_APPEND_DIVISOR = 4;

    private final Lock lock;
    private final PendingCalls pending;
    private final CommitPace pace;
    /** Of the thread that waits; {@code null} if none does. */
    private @Nullable Condition gatherer;
    /** The number of calls for which it waits. */
    private int gatherCalls;
    /** Whether it delays a commit, which a call of a waiting caller ends. */
    private boolean delaying;

    private boolean closed;

    Gathering(Lock lock, PendingCalls pending, CommitPace pace) {
        this.lock = lock;
        this.pending = pending;
        this.pace = pace;
    }

    /** Returns whether a thread waits. */
    boolean isActive() {
        return gatherer != null;
    }

    /** Waits for the callers of the thread's last batch to call again. */
    void awaitCallers(int calls, long appendNanos) throws InterruptedException {
        if (calls >= 2) {
            gather(calls, Math.min(appendNanos / GATHER_APPEND_DIVISOR, GATHER_NANOS_MAX), false);
        }
    }

    /** Waits as long as the next commit is delayed. */
    void delayCommit(int callsInProgress) throws InterruptedException {
        long now = System.nanoTime();
        if (pending.calls() > 0 && pace.remainingNanos(now) > 0) {
            pace.recordOutstanding(pending.calls() + callsInProgress, now);
            gather(pace.callsExpected(now), pace.remainingNanos(now), true);
        }
    }

    private void gather(int calls, long nanos, boolean delay) throws InterruptedException {
        if (gatherer != null) {
            return;
        }
        gatherer = lock.newCondition();
        gatherCalls = calls;
        delaying = delay;
        try {
            long left = nanos;
            while (left > 0 && !closed && !isGathered()) {
                left = gatherer.awaitNanos(left);
            }
        } finally {
            gatherer = null;
        }
    }

    private boolean isGathered() {
        return pending.calls() >= gatherCalls || pending.isWorthSharing() || (delaying && pending.hasWaitingCaller());
    }

    /** Ends the wait if it need not be longer, after a call was added. */
    void callAdded() {
        if (gatherer != null && isGathered()) {
            gatherer.signal();
        }
    }

    /** Ends the wait; nothing is waited for any more. */
    void close() {
        closed = true;
        if (gatherer != null) {
            gatherer.signal();
        }
    }
}
