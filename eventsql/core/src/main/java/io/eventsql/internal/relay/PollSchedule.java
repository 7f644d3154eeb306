package io.eventsql.internal.relay;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * Determines when the relay polls the outbox. The library does not learn of a commit unless the application signals it, so
 * after a publish the relay polls after 1, 2, 4 … ms, up to the poll interval: the delay between an event's commit and its
 * poll is at most the time between its publish and the commit. Thread-safe.
 */
final class PollSchedule {
    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Doublings of the pause: enough to exceed any poll interval. */
    private static final int DOUBLINGS_MAX = 20;
    /** The pause after a poll is at least its duration times this, so that slow polls become less frequent. */
    private static final int PAUSE_PER_POLL = 2;

    private static final long PAUSE_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(10);

    private final LongSupplier clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private int pollsSinceHint = DOUBLINGS_MAX;

    private long nextNanos;
    /** The earliest time of the next poll, even after a hint. */
    private long notBeforeNanos;

    private boolean hinted;
    private boolean closed;

    /** @param clock a clock in nanoseconds, such as {@link System#nanoTime()} */
    PollSchedule(LongSupplier clock) {
        this.clock = clock;
        this.nextNanos = clock.getAsLong();
        this.notBeforeNanos = nextNanos;
    }

    /** Signals that a transaction of any process has published and will be committed or rolled back. */
    void published() {
        hint(FIRST_PAUSE_NANOS);
    }

    /** Signals that a transaction that published was committed. */
    void committed() {
        hint(0);
    }

    private void hint(long delayNanos) {
        lock.lock();
        try {
            pollsSinceHint = 0;
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

    /** Schedules the next poll after a pause at the latest, for another reason than events in the outbox. */
    void wakeIn(long pauseNanos) {
        lock.lock();
        try {
            long at = clock.getAsLong() + Math.max(0, pauseNanos);
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

    /** Returns the time until the next poll; negative if it is overdue. */
    long untilNextNanos() {
        lock.lock();
        try {
            return nextNanos - clock.getAsLong();
        } finally {
            lock.unlock();
        }
    }

    /** Waits until the next poll is due; returns whether there was a hint since the last one. */
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
     * Schedules the next poll after one that found events. More may follow immediately; under load the pause lets them
     * accumulate, so that the relay uses a bounded share of the database's capacity.
     *
     * @param pollNanos the duration of the poll, including moving the events
     */
    void found(long pollNanos) {
        long pause = Math.clamp(PAUSE_PER_POLL * pollNanos, FIRST_PAUSE_NANOS, PAUSE_NANOS_MAX);
        scheduleNext(pause, pause);
    }

    /** Schedules the next poll after one that found no event and took {@code pollNanos}. */
    void foundNothing(long pollNanos, Duration pollInterval) {
        lock.lock();
        try {
            long pause = Math.min(pollInterval.toNanos(), FIRST_PAUSE_NANOS << pollsSinceHint);
            pollsSinceHint = Math.min(pollsSinceHint + 1, DOUBLINGS_MAX);
            scheduleNext(pause, PAUSE_PER_POLL * pollNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Schedules the next poll after a pause, or earlier after a hint, but not before the minimum pause. */
    void scheduleNext(Duration pause, Duration pauseMin) {
        scheduleNext(pause.toNanos(), pauseMin.toNanos());
    }

    private void scheduleNext(long pauseNanos, long pauseMinNanos) {
        lock.lock();
        try {
            long now = clock.getAsLong();
            notBeforeNanos = now + pauseMinNanos;
            // A hint that arrived during the poll may have been too late for it.
            nextNanos = now + Math.max(hinted ? Math.min(pauseNanos, FIRST_PAUSE_NANOS) : pauseNanos, pauseMinNanos);
        } finally {
            lock.unlock();
        }
    }
}
