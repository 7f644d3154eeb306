package io.eventsql.internal.consume;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * When the lease keeper of a shard acts: heartbeats are due at intervals or on request, releases on request. Thread-safe.
 */
final class HeartbeatSchedule {
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private boolean heartbeatRequested;
    private boolean releaseRequested;
    private long dueNanos = System.nanoTime();

    /** Requests a heartbeat now: members or assignments have changed. */
    void requestHeartbeat() {
        request(true);
    }

    /** Requests a release now: a handler has ended, whose partition or member waits for that. */
    void requestRelease() {
        request(false);
    }

    private void request(boolean heartbeat) {
        lock.lock();
        try {
            heartbeatRequested |= heartbeat;
            releaseRequested = true;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Waits for a request or until the next heartbeat is due; returns whether there is to be a heartbeat. */
    boolean await() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (!heartbeatRequested && !releaseRequested && dueNanos - System.nanoTime() > 0) {
                changed.awaitNanos(dueNanos - System.nanoTime());
            }
            boolean heartbeat = heartbeatRequested || dueNanos - System.nanoTime() <= 0;
            heartbeatRequested = false;
            releaseRequested = false;
            return heartbeat;
        } finally {
            lock.unlock();
        }
    }

    /** Sets when the next heartbeat is due, as nano time. */
    void scheduleAt(long nanoTime) {
        lock.lock();
        try {
            dueNanos = nanoTime;
        } finally {
            lock.unlock();
        }
    }

    /** Moves the next heartbeat forward, if it is due later than after this delay. */
    void scheduleWithin(long delayNanos) {
        long latest = System.nanoTime() + delayNanos;
        lock.lock();
        try {
            if (latest - dueNanos < 0) {
                dueNanos = latest;
            }
        } finally {
            lock.unlock();
        }
    }
}
