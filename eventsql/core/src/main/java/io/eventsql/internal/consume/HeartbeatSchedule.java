package io.eventsql.internal.consume;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * When the lease keeper of a shard acts: heartbeats are due at intervals or on request, releases on request. Thread-safe.
 */
final class HeartbeatSchedule {
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final Set<Integer> requestedConsumers = new HashSet<>();
    private boolean allRequested;
    /** Whether anything was requested, a release at least. */
    private boolean requested;

    private long dueNanos = System.nanoTime();

    /**
     * What is to be done now, besides releases.
     *
     * @param heartbeat whether a heartbeat is to be sent
     * @param ofAll whether it was requested for all members
     * @param consumers the ids of the consumers for whose members it was requested
     */
    record Due(boolean heartbeat, boolean ofAll, Set<Integer> consumers) {
        boolean isRequestedFor(int consumerId) {
            return ofAll || consumers.contains(consumerId);
        }
    }

    /** Requests a heartbeat of all members now: assignments have changed. */
    void requestHeartbeat() {
        request(() -> allRequested = true);
    }

    /** Requests a heartbeat of the members of a consumer now: members have come or gone. */
    void requestHeartbeat(int consumerId) {
        request(() -> requestedConsumers.add(consumerId));
    }

    /** Requests a release now: a handler has ended, whose partition or member waits for that. */
    void requestRelease() {
        request(() -> {});
    }

    private void request(Runnable request) {
        lock.lock();
        try {
            request.run();
            requested = true;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Waits for a request or until the next heartbeat is due. */
    Due await() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (!requested && dueNanos - System.nanoTime() > 0) {
                changed.awaitNanos(dueNanos - System.nanoTime());
            }
            boolean heartbeatRequested = allRequested || !requestedConsumers.isEmpty();
            Due due = new Due(
                    heartbeatRequested || dueNanos - System.nanoTime() <= 0,
                    allRequested,
                    Set.copyOf(requestedConsumers));
            allRequested = false;
            requestedConsumers.clear();
            requested = false;
            return due;
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
