package io.eventsql.internal.relay;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * When the relay looks into the outbox. Nobody tells the library that a transaction was committed, unless the application
 * does. So after a publish it looks after 1, 2, 4 … ms, until it is back at the poll interval: an event comes at most as
 * long after its commit as its transaction has lasted behind the publish. Thread-safe.
 */
final class PollSchedule {
    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Pauses double so often at most: to more than any poll interval. */
    private static final int DOUBLINGS_MAX = 20;
    /** A look that takes longer than usual is made more rarely. */
    private static final int PAUSE_FOR_EACH_LOOK = 2;

    private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final LongSupplier clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    /** Since the last hint. */
    private int looksSinceHint = DOUBLINGS_MAX;

    private long nextNanos;
    /** No hint brings the next look forward to before this moment. */
    private long notBeforeNanos;

    private boolean hinted;
    private boolean closed;

    /** @param clock in nanoseconds, as {@link System#nanoTime()} */
    PollSchedule(LongSupplier clock) {
        this.clock = clock;
        this.nextNanos = clock.getAsLong();
        this.notBeforeNanos = nextNanos;
    }

    /** A transaction, here or in another process, has published and will be committed or rolled back. */
    void published() {
        hint(FIRST_NANOS);
    }

    /** A transaction that published was committed. */
    void committed() {
        hint(0);
    }

    private void hint(long delayNanos) {
        lock.lock();
        try {
            looksSinceHint = 0;
            hinted = true;
            long at = clock.getAsLong() + delayNanos;
            at = at - notBeforeNanos < 0 ? notBeforeNanos : at;
            if (at - nextNanos < 0) {
                nextNanos = at;
                changed.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    void close() {
        lock.lock();
        try {
            closed = true;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    boolean isClosed() {
        lock.lock();
        try {
            return closed;
        } finally {
            lock.unlock();
        }
    }

    /** How long until the next look; negative if it is overdue. */
    long untilNextNanos() {
        lock.lock();
        try {
            return nextNanos - clock.getAsLong();
        } finally {
            lock.unlock();
        }
    }

    /** Waits for the next look; returns whether there was a hint since the last one. */
    boolean await() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            long left = nextNanos - clock.getAsLong();
            while (left > 0 && !closed) {
                changed.awaitNanos(left);
                left = nextNanos - clock.getAsLong();
            }
            boolean result = hinted;
            hinted = false;
            return result;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Events were found by a look, moving them included, that took so long: more may come at once. Under load the pause
     * lets them gather, so that the relay takes a bounded part of what the database can do.
     */
    void found(long lookNanos) {
        long pause = Math.clamp(PAUSE_FOR_EACH_LOOK * lookNanos, FIRST_NANOS, LONGEST_PAUSE_NANOS);
        next(pause, pause);
    }

    /** Nothing was found by a look that took so long. */
    void foundNothing(long lookNanos, Duration pollInterval) {
        lock.lock();
        try {
            long pause = Math.min(pollInterval.toNanos(), FIRST_NANOS << looksSinceHint);
            looksSinceHint = Math.min(looksSinceHint + 1, DOUBLINGS_MAX);
            next(pause, PAUSE_FOR_EACH_LOOK * lookNanos);
        } finally {
            lock.unlock();
        }
    }

    /** The next look comes after a pause, sooner after a hint, but never before the shorter one has passed. */
    void next(Duration pause, Duration pauseMin) {
        next(pause.toNanos(), pauseMin.toNanos());
    }

    private void next(long pauseNanos, long pauseMinNanos) {
        lock.lock();
        try {
            long now = clock.getAsLong();
            notBeforeNanos = now + pauseMinNanos;
            // A hint that came during the look may have come too late for it.
            nextNanos = now + Math.max(hinted ? Math.min(pauseNanos, FIRST_NANOS) : pauseNanos, pauseMinNanos);
        } finally {
            lock.unlock();
        }
    }
}
