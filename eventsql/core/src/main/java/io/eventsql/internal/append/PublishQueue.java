package io.eventsql.internal.append;

import io.eventsql.BufferState;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The queue between the callers and the append threads of one shard. Its buffer limits the bytes of the calls that wait or
 * are being appended. Thread-safe.
 */
final class PublishQueue {
    private final long bufferBytes;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition spaceFreed = lock.newCondition();
    private final IdleThreads idle = new IdleThreads(lock);
    private final Gathering gathering;
    private final PendingCalls pending;
    private final CommitPace pace;
    private final CallRouting routing;
    /** The batches being appended, with the time at which they were taken (nano time). */
    private final Map<Batch, Long> inProgress = new HashMap<>();

    private long bufferedBytes;
    private int callsInProgress;
    private int blockedCallers;
    private boolean closed;
    /** Whether what waits is no longer appended. */
    private boolean aborted;
    /** The number of the slot map by which calls must be routed at least: the shard has closed slots since. */
    private long routedSince;
    /** The calls whose deadline has passed and that have not failed yet: empty unless an Error has interrupted that. */
    private final Queue<PublishCall> expired = new ConcurrentLinkedQueue<>();
    /** Why the last append to the shard failed, as of the last check of the deadlines. */
    private @Nullable Throwable lastFailure;

    PublishQueue(PendingCalls pending, CommitPace pace, long bufferBytes, CallRouting routing) {
        this.pending = pending;
        this.routing = routing;
        this.pace = pace;
        this.gathering = new Gathering(lock, pending, pace);
        this.bufferBytes = bufferBytes;
    }

    /** Routes the waiting calls of a queue anew. */
    @FunctionalInterface
    interface CallRouting {
        /** Routes them in the step, which it runs without holding the queue's lock. */
        void reroute(Step step);

        /** Replaces the waiting calls. */
        @FunctionalInterface
        interface Step {
            /**
             * Routes the waiting calls, unless the queue has batches in progress.
             *
             * @param route routes a call, and returns what of it belongs to the queue's shard; passes the rest on
             * @param routedBy the number of the slot map by which it does
             * @return {@code false} if nothing was done, because the queue has batches in progress again
             */
            boolean run(Function<PublishCall, List<PublishCall>> route, long routedBy);
        }
    }

    /**
     * Adds a call. Blocks while the buffer is full, until the call's deadline. A call that cannot be added fails as not
     * stored.
     *
     * @return {@code false} if the call must be routed anew, because the shard has closed slots since it was routed
     */
    boolean put(PublishCall call) {
        Consumer<PublishCall> refusal;
        lock.lock();
        try {
            if (awaitSpace(call)) {
                if (call.routedBy() < routedSince) {
                    return false;
                }
                enter(call);
                return true;
            }
            Throwable shardFailure = lastFailure;
            refusal = closed
                    ? refused -> refused.failAsNotStored("the publisher is closed", null)
                    : refused -> refused.failAsBufferFull(bufferBytes, shardFailure);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            refusal = refused ->
                    refused.failAsNotStored("the caller was interrupted while it waited for space in the buffer", e);
        } finally {
            lock.unlock();
        }
        refusal.accept(call); // without the lock: it may call listeners of the application
        return true;
    }

    /** Waits until the buffer has space; returns {@code false} if it is closed, or still full at the call's deadline. */
    private boolean awaitSpace(PublishCall call) throws InterruptedException {
        // A call larger than the buffer is accepted if the buffer is empty.
        while (!closed && bufferedBytes > 0 && bufferedBytes + call.bytes() > bufferBytes) {
            long left = call.deadlineNanos() - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            blockedCallers++;
            try {
                spaceFreed.awaitNanos(left);
            } finally {
                blockedCallers--;
            }
        }
        return !closed;
    }

    /** Adds a call if the buffer has room; otherwise returns {@code false} without waiting. */
    boolean offer(PublishCall call) {
        lock.lock();
        try {
            if (closed || call.routedBy() < routedSince || bufferedBytes + call.bytes() > bufferBytes) {
                return false;
            }
            enter(call);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Adds a call that has waited in the queue of another shard, even if this one is full or closed; fails it once aborted. */
    void accept(PublishCall call) {
        lock.lock();
        try {
            if (!aborted) {
                enter(call);
                return;
            }
        } finally {
            lock.unlock();
        }
        call.failAsClosed(null);
    }

    /** Has the waiting calls routed anew before the next batch, because the shard has closed slots. */
    void requireRerouting() {
        lock.lock();
        try {
            pending.requireRerouting();
            idle.wake();
        } finally {
            lock.unlock();
        }
    }

    /** Routes all waiting calls anew, if that is due. Called with the lock, which is released in between. */
    private void rerouteIfDue() {
        if (!pending.isRerouting() || !inProgress.isEmpty()) {
            return;
        }
        lock.unlock();
        try {
            routing.reroute(this::replaceWaiting);
        } finally {
            lock.lock();
        }
    }

    private boolean replaceWaiting(Function<PublishCall, List<PublishCall>> route, long routedBy) {
        lock.lock();
        try {
            if (!pending.isRerouting() || !inProgress.isEmpty()) {
                return false;
            }
            pending.reroute(call -> {
                bufferedBytes -= call.bytes();
                List<PublishCall> staying = route.apply(call);
                staying.forEach(part -> bufferedBytes += part.bytes());
                return staying;
            });
            routedSince = routedBy;
            spaceFreed.signalAll();
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
        gathering.callAdded();
        if (!idle.isEmpty() && pending.hasFreeLane()) {
            boolean isThreadComing = gathering.isActive() || idle.isWaking();
            if (!isThreadComing || pending.isWorthSharing()) {
                idle.wake();
            }
        }
    }

    /**
     * Releases a thread's last batch and returns its next one; waits until there is one.
     *
     * <p>Before that it may wait for more calls, see {@link Gathering}.
     *
     * @param last the thread's last batch, whatever its outcome; {@code null} if there was none
     * @return {@code null} once the queue is closed and empty
     */
    @Nullable
    Batch finishAndTake(@Nullable Batch last) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            Long startedAt = last == null ? null : inProgress.remove(last);
            if (last != null && startedAt != null) { // not released before by a call that was interrupted
                long now = System.nanoTime();
                pace.recordOutstanding(pending.calls() + callsInProgress, now); // the most since the last batch ended
                release(last);
                if (!last.hasReturnedCalls()) { // what fails ends earlier than a commit
                    pace.recordCommit(last.eventCount(), last.streamCount(), now - startedAt, now);
                }
                gathering.awaitCallers(last.calls().size(), now - startedAt);
            }
            while (true) {
                gathering.delayCommit(callsInProgress);
                rerouteIfDue();
                Batch batch = gathering.isActive() && !pending.isWorthSharing() ? null : take();
                if (batch != null) {
                    if (pending.hasFreeLane()) { // it took its share
                        wakeForWaiting();
                    }
                    return batch;
                }
                if (closed && pending.calls() == 0) {
                    idle.wakeAll();
                    return null;
                }
                idle.await();
            }
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Batch take() {
        return inProgress(pending.takeBatch());
    }

    /**
     * Returns whether calls wait to be routed anew, because their stream has grown: then a batch gives back what is not stored,
     * instead of trying again.
     */
    boolean isRerouting() {
        lock.lock();
        try {
            return pending.isRerouting();
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Batch inProgress(@Nullable Batch batch) {
        if (batch != null) {
            try {
                long now = System.nanoTime();
                inProgress.put(batch, now);
                callsInProgress += batch.calls().size();
                pace.recordBegin(batch.calls().size(), batch.eventCount(), now);
            } catch (Throwable e) { // out of memory: without this its calls would never be completed
                pending.putBack(batch);
                throw e;
            }
        }
        return batch;
    }

    private void release(Batch batch) {
        callsInProgress -= batch.calls().size();
        pending.done(batch);
        bufferedBytes -= batch.bytes();
        if (batch.hasReturnedCalls()) {
            takeBack(batch);
        }
        spaceFreed.signalAll();
    }

    private void takeBack(Batch batch) {
        List<PublishCall> held = new ArrayList<>();
        List<PublishCall> following = new ArrayList<>();
        for (PublishCall call : batch.calls().reversed()) {
            PublishCall.Return reason = call.takeReturned();
            if (reason != null) {
                bufferedBytes += call.bytes();
                switch (reason) {
                    case REROUTE -> pending.takeBack(call);
                    case HOLD -> held.add(call);
                    case FOLLOW -> following.add(call);
                }
            }
        }
        pending.hold(held, following);
    }

    private void release(PublishCall call) {
        bufferedBytes -= call.bytes();
    }

    /** Takes further calls of the lanes that a batch in progress has reserved; {@code null} if there are none. */
    @Nullable
    Batch takeMore(Batch batch) {
        lock.lock();
        try {
            return inProgress(pending.takeMore(batch));
        } finally {
            lock.unlock();
        }
    }

    /** Releases a batch returned by {@link #takeMore}, whatever its outcome. */
    void finish(Batch more) {
        lock.lock();
        try {
            if (inProgress.remove(more) != null) {
                release(more);
                wakeForWaiting();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Frees the lanes that a batch in progress has reserved but does not use: it is going to take longer. */
    void releaseUnusedLanes(Batch batch) {
        lock.lock();
        try {
            pending.releaseUnusedLanes(batch);
            wakeForWaiting();
        } finally {
            lock.unlock();
        }
    }

    /** Wakes a thread for calls whose lanes may be free now. */
    private void wakeForWaiting() {
        if (pending.calls() > 0) {
            idle.wake();
        }
    }

    /** Returns a new number for a part of a batch in progress; greater than all previous ones. */
    long nextBatchNumber() {
        lock.lock();
        try {
            return pending.nextBatchNumber();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Fails the calls whose deadline has passed: as not stored if that is certain, otherwise as unknown.
     *
     * @param shardFailure why the last append to the shard failed; {@code null} if it did not
     */
    void expire(long nowNanos, @Nullable Throwable shardFailure) {
        removeExpired(nowNanos, shardFailure);
        failExpired(nowNanos, shardFailure);
    }

    /** The thread that closes the publisher and the one that checks deadlines may do this at the same time. */
    private void failExpired(long nowNanos, @Nullable Throwable shardFailure) {
        for (PublishCall call = expired.peek(); call != null; call = expired.peek()) {
            if (call.deadlineNanos() - nowNanos <= 0) {
                call.expire(nowNanos, shardFailure);
            } else {
                call.failAsClosed(shardFailure);
            }
            expired.remove(call);
        }
    }

    private void removeExpired(long nowNanos, @Nullable Throwable shardFailure) {
        lock.lock();
        try {
            lastFailure = shardFailure;
            pending.removeExpired(nowNanos, call -> {
                release(call);
                expired.add(call);
            });
            if (pending.tick()) {
                idle.wake();
            }
            if (!expired.isEmpty()) {
                spaceFreed.signalAll();
                idle.wakeAll(); // a removed wide call no longer holds back later ones
            }
            for (Batch batch : inProgress.keySet()) {
                if (batch.firstDeadlineNanos() - nowNanos > 0) {
                    continue;
                }
                for (PublishCall call : batch.calls()) {
                    if (call.deadlineNanos() - nowNanos <= 0 && !call.isCompleted()) {
                        expired.add(call);
                    }
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Removes the calls without keys that were never sent, so that they can be rerouted to another shard. Their bytes stay
     * reserved until {@link #finishRerouting}; otherwise new calls would fill the buffer each time.
     */
    List<PublishCall> takeReroutable() {
        lock.lock();
        try {
            return pending.removeWithoutKeys();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Releases the calls that another shard has accepted and takes back the others, even if the queue is closed; fails them once it
     * is aborted.
     *
     * @param moved the calls that another shard has accepted
     * @param staying the calls to append to this shard
     */
    void finishRerouting(List<PublishCall> moved, List<PublishCall> staying) {
        List<PublishCall> left = List.of();
        lock.lock();
        try {
            if (aborted) {
                left = staying;
                left.forEach(this::release);
            } else {
                staying.forEach(pending::add);
            }
            moved.forEach(this::release);
            if (!moved.isEmpty() || !left.isEmpty()) {
                spaceFreed.signalAll();
            }
            if (!staying.isEmpty()) {
                signalWork();
            }
        } finally {
            lock.unlock();
        }
        left.forEach(call -> call.failAsClosed(null));
    }

    /** Returns the bytes of the calls that wait or are being appended. */
    long bufferedBytes() {
        lock.lock();
        try {
            return bufferedBytes;
        } finally {
            lock.unlock();
        }
    }

    BufferState bufferState(int shard, String name) {
        lock.lock();
        try {
            return new BufferState(shard, name, bufferedBytes, bufferBytes, pending.calls(), blockedCallers);
        } finally {
            lock.unlock();
        }
    }

    /** Rejects further calls; waiting calls are still appended. */
    void close() {
        lock.lock();
        try {
            closed = true;
            gathering.close();
            spaceFreed.signalAll();
            idle.wakeAll();
        } finally {
            lock.unlock();
        }
    }

    /** Fails all remaining calls, sent or not, and those that come back from here on. */
    void abort(@Nullable Throwable shardFailure) {
        lock.lock();
        try {
            aborted = true;
        } finally {
            lock.unlock();
        }
        removeExpired(System.nanoTime() + Long.MAX_VALUE / 2, shardFailure);
        failExpired(System.nanoTime(), shardFailure);
    }

    /** Waits until no call waits or is being appended; returns {@code false} if that takes longer than the given time. */
    boolean awaitEmpty(long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        lock.lockInterruptibly();
        try {
            while (pending.calls() > 0 || !inProgress.isEmpty()) {
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
