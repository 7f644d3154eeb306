package io.eventsql.internal.append;

import io.eventsql.BufferState;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Where publishers and the appending threads of one shard meet: calls wait here until a batch takes them, and the buffer
 * bounds them, those under way included. Thread-safe.
 */
final class PublishQueue {
    /** The longest a thread waits for the callers it has just answered to call again. */
    private static final long GATHER_NANOS_MAX = TimeUnit.MICROSECONDS.toNanos(300);
    /** … and the part of its last append's duration that this wait may take. */
    private static final int GATHER_PART_OF_APPEND = 4;

    private final long bufferBytes;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition spaceFreed = lock.newCondition();
    private final Condition work = lock.newCondition();
    private final PendingCalls pending;
    /** What is under way, and since when (nano time). */
    private final Map<Batch, Long> underWay = new HashMap<>();

    private long bufferedBytes;
    private int waitingThreads;
    private int blockedCallers;
    /** How many calls the thread that gathers waits for; 0: none gathers. */
    private int gatherCalls;

    private @Nullable Condition gatherer;
    private boolean closed;

    PublishQueue(PendingCalls pending, long bufferBytes) {
        this.pending = pending;
        this.bufferBytes = bufferBytes;
    }

    /**
     * Adds a call; waits while the buffer is full, until the call's deadline. A call that cannot be added is completed
     * as not stored.
     */
    void put(PublishCall call) {
        lock.lock();
        try {
            // A call larger than the whole buffer may enter an empty one.
            while (!closed && bufferedBytes > 0 && bufferedBytes + call.bytes() > bufferBytes) {
                long left = call.deadlineNanos() - System.nanoTime();
                if (left <= 0) {
                    call.notStored(
                            "the buffer of " + bufferBytes + " bytes was full until the deadline"
                                    + " (settings.bufferBytes, settings.publishTimeout)",
                            null);
                    return;
                }
                blockedCallers++;
                try {
                    spaceFreed.awaitNanos(left);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    call.notStored("the caller was interrupted while it waited for space in the buffer", e);
                    return;
                } finally {
                    blockedCallers--;
                }
            }
            if (closed) {
                call.notStored("the publisher is closed", null);
                return;
            }
            enter(call);
        } finally {
            lock.unlock();
        }
    }

    /** Adds a call if there is room at once. */
    boolean offer(PublishCall call) {
        lock.lock();
        try {
            if (closed || bufferedBytes + call.bytes() > bufferBytes) {
                return false;
            }
            enter(call);
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void enter(PublishCall call) {
        bufferedBytes += call.bytes();
        pending.add(call);
        signalWork();
    }

    private void signalWork() {
        if (gatherer != null && (pending.calls() >= gatherCalls || pending.isWorthSharing())) {
            gatherer.signal();
        }
        if (waitingThreads > 0 && pending.hasFreeLane() && (gatherer == null || pending.isWorthSharing())) {
            work.signal();
        }
    }

    /**
     * Ends a thread's last batch and gives it the next one; waits until there is one.
     *
     * <p>A thread that has just answered many callers waits a moment for them to call again: going on with the first of
     * them would leave all others to the next commit, so that every second batch would be almost empty. A single caller
     * never waits.
     *
     * @param last the thread's last batch, whatever became of it; {@code null} if there was none
     * @return {@code null} once the queue is closed and nothing is left
     */
    @Nullable
    Batch next(@Nullable Batch last) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            if (last != null) {
                long startedAt = end(last);
                gather(last.calls().size(), System.nanoTime() - startedAt);
            }
            while (true) {
                Batch batch = gatherer != null && !pending.isWorthSharing() ? null : pending.nextBatch();
                if (batch != null) {
                    underWay.put(batch, System.nanoTime());
                    if (pending.hasFreeLane() && pending.isWorthSharing()) {
                        work.signal();
                    }
                    return batch;
                }
                if (closed && pending.calls() == 0) {
                    work.signalAll();
                    return null;
                }
                waitingThreads++;
                try {
                    work.await();
                } finally {
                    waitingThreads--;
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private void gather(int calls, long appendNanos) throws InterruptedException {
        long left = Math.min(appendNanos / GATHER_PART_OF_APPEND, GATHER_NANOS_MAX);
        if (calls < 2 || gatherer != null) {
            return;
        }
        gatherer = lock.newCondition();
        gatherCalls = calls;
        try {
            while (left > 0 && !closed && pending.calls() < calls && !pending.isWorthSharing()) {
                left = gatherer.awaitNanos(left);
            }
        } finally {
            gatherer = null;
        }
    }

    private long end(Batch batch) {
        Long startedAt = underWay.remove(batch);
        pending.done(batch);
        batch.calls().forEach(this::release);
        spaceFreed.signalAll();
        if (waitingThreads > 0 && pending.calls() > 0) {
            work.signal();
        }
        return startedAt == null ? System.nanoTime() : startedAt;
    }

    private void release(PublishCall call) {
        bufferedBytes -= call.bytes();
    }

    /** A number for a part of a batch that is on its way; greater than all before. */
    long nextBatchNumber() {
        lock.lock();
        try {
            return pending.nextBatchNumber();
        } finally {
            lock.unlock();
        }
    }

    /** Gives up the calls whose deadline has passed: what was never sent is not stored, the rest is unknown. */
    void expire(long nowNanos, @Nullable Throwable lastFailure) {
        List<PublishCall> expired = new ArrayList<>();
        lock.lock();
        try {
            pending.removeExpired(nowNanos, call -> {
                release(call);
                expired.add(call);
            });
            if (!expired.isEmpty()) {
                spaceFreed.signalAll();
                work.signalAll(); // a wide call that is gone holds up nobody
            }
            for (Batch batch : underWay.keySet()) {
                for (PublishCall call : batch.calls()) {
                    if (call.deadlineNanos() - nowNanos <= 0 && !call.isCompleted()) {
                        expired.add(call);
                    }
                }
            }
        } finally {
            lock.unlock();
        }
        for (PublishCall call : expired) {
            call.giveUp(
                    "it was not sent until the deadline (settings.publishTimeout)",
                    "the database did not answer until the deadline",
                    lastFailure);
        }
    }

    /**
     * Takes the calls without keys that were never sent: another shard may have them. They keep their place in the
     * buffer until {@link #giveBack}, or it would fill anew each time.
     */
    List<PublishCall> takeMovable() {
        lock.lock();
        try {
            return pending.removeWithoutKeys();
        } finally {
            lock.unlock();
        }
    }

    /** Ends what {@link #takeMovable} began; a closed queue still appends the calls that stay. */
    void giveBack(List<PublishCall> moved, List<PublishCall> staying) {
        lock.lock();
        try {
            staying.forEach(pending::add);
            if (!moved.isEmpty()) {
                moved.forEach(this::release);
                spaceFreed.signalAll();
            }
            if (!staying.isEmpty()) {
                signalWork();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Bytes of events that wait or are on their way. */
    long bufferedBytes() {
        lock.lock();
        try {
            return bufferedBytes;
        } finally {
            lock.unlock();
        }
    }

    BufferState state(int shard, String name) {
        lock.lock();
        try {
            return new BufferState(shard, name, bufferedBytes, bufferBytes, pending.calls(), blockedCallers);
        } finally {
            lock.unlock();
        }
    }

    /** Refuses further calls; what waits is still appended. */
    void close() {
        lock.lock();
        try {
            closed = true;
            spaceFreed.signalAll();
            work.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Fails everything that is left, sent or not. */
    void abandon() {
        expire(System.nanoTime() + Long.MAX_VALUE / 2, null);
    }

    /** Waits at most the given time until nothing waits and nothing is under way. */
    boolean awaitEmpty(long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        lock.lockInterruptibly();
        try {
            while (pending.calls() > 0 || !underWay.isEmpty()) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    return false;
                }
                spaceFreed.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }
}
