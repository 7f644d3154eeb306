package io.eventsql.internal.append;

import io.eventsql.StreamSpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The calls that wait to be appended to one shard, and the buffer that bounds them. Thread-safe.
 *
 * <p>Several lanes append at the same time. A partition belongs to one lane (its number modulo the lanes), so at most
 * one batch of a partition is on its way and its calls stay in order. Calls without keys go with whichever lane comes
 * first. A call over partitions of several lanes is <i>wide</i>: it waits until all earlier calls are done, goes while
 * no other lane is under way, and nothing overtakes it.
 */
final class PublishQueue {
    private final int lanes;
    private final long bufferBytes;
    private final int maxBatchEvents;
    private final long maxBatchBytes;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition spaceFreed = lock.newCondition();
    private final List<Deque<PublishCall>> ofLane = new ArrayList<>();
    private final Deque<PublishCall> ofAnyLane = new ArrayDeque<>();
    private final Deque<PublishCall> wide = new ArrayDeque<>();
    private final List<Condition> workForLane = new ArrayList<>();
    private final boolean[] laneWaits;
    private final Set<Batch> underWay = new HashSet<>();
    private final Map<StreamSpec, Integer> rotation = new HashMap<>();
    private boolean wideUnderWay;
    private long bufferedBytes;
    private long lastSequence;
    private long lastBatchNumber;
    private boolean closed;

    PublishQueue(int lanes, long bufferBytes, int maxBatchEvents, long maxBatchBytes) {
        this.lanes = lanes;
        this.bufferBytes = bufferBytes;
        this.maxBatchEvents = maxBatchEvents;
        this.maxBatchBytes = maxBatchBytes;
        this.laneWaits = new boolean[lanes];
        for (int lane = 0; lane < lanes; lane++) {
            ofLane.add(new ArrayDeque<>());
            workForLane.add(lock.newCondition());
        }
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
                try {
                    spaceFreed.awaitNanos(left);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    call.notStored("the caller was interrupted while it waited for space in the buffer", e);
                    return;
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

    /** Adds a call that was taken away by {@link #takeMovable}; a closed queue still appends it. */
    void putBack(PublishCall call) {
        lock.lock();
        try {
            enter(call);
        } finally {
            lock.unlock();
        }
    }

    private void enter(PublishCall call) {
        bufferedBytes += call.bytes();
        call.setSequence(++lastSequence);
        enqueue(call);
    }

    private void enqueue(PublishCall call) {
        if (call.hasNoKeys() && call.stream().partitions() >= lanes) {
            ofAnyLane.add(call);
            for (int lane = 0; lane < lanes; lane++) {
                if (laneWaits[lane]) {
                    workForLane.get(lane).signal();
                    return;
                }
            }
            return;
        }
        int lane = call.hasNoKeys() ? 0 : laneOf(call);
        if (lane < 0) {
            wide.add(call);
            workForLane.forEach(Condition::signal);
        } else {
            ofLane.get(lane).add(call);
            workForLane.get(lane).signal();
        }
    }

    /** The lane of all the call's partitions; -1 if they are of several. */
    private int laneOf(PublishCall call) {
        int lane = call.partition(0) % lanes;
        for (int i = 1; i < call.events().size(); i++) {
            if (call.partition(i) % lanes != lane) {
                return -1;
            }
        }
        return lane;
    }

    /**
     * Waits for calls of a lane and takes as many as fit a batch.
     *
     * @return {@code null} once the queue is closed and nothing is left for the lane
     */
    @Nullable
    Batch take(int lane) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (true) {
                Batch batch = nextBatch(lane);
                if (batch != null) {
                    underWay.add(batch);
                    return batch;
                }
                if (closed && ofLane.get(lane).isEmpty() && ofAnyLane.isEmpty() && wide.isEmpty()) {
                    return null;
                }
                laneWaits[lane] = true;
                try {
                    workForLane.get(lane).await();
                } finally {
                    laneWaits[lane] = false;
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Batch nextBatch(int lane) {
        if (wideUnderWay) {
            return null;
        }
        PublishCall firstWide = wide.peek();
        Deque<PublishCall> own = ofLane.get(lane);
        if (firstWide == null) {
            BatchBuilder batch = new BatchBuilder(lane);
            batch.takeFrom(own, Long.MAX_VALUE);
            batch.takeFrom(ofAnyLane, Long.MAX_VALUE);
            return batch.build();
        }
        BatchBuilder beforeWide = new BatchBuilder(lane);
        beforeWide.takeFrom(own, firstWide.sequence());
        if (!beforeWide.isEmpty()) {
            return beforeWide.build();
        }
        if (firstCallOfAnySingleLane() < firstWide.sequence() || !underWay.isEmpty()) {
            return null;
        }
        BatchBuilder wideBatch = new BatchBuilder(lane);
        wideBatch.takeFrom(ofAnyLane, firstWide.sequence()); // or they would starve while wide calls keep coming
        wideBatch.takeFrom(wide, firstCallOfAnySingleLane());
        wideBatch.takeFrom(ofAnyLane, Long.MAX_VALUE);
        Batch batch = wideBatch.build();
        wideUnderWay = batch != null;
        return batch;
    }

    /** A wide call waits for the calls of single lanes that came before it. */
    private long firstCallOfAnySingleLane() {
        return ofLane.stream()
                .filter(queue -> !queue.isEmpty())
                .mapToLong(queue -> queue.getFirst().sequence())
                .min()
                .orElse(Long.MAX_VALUE);
    }

    /** Gathers calls up to the limits of a batch. */
    private final class BatchBuilder {
        private final int lane;
        private final List<PublishCall> calls = new ArrayList<>();
        private final Map<StreamSpec, Integer> sticky = new HashMap<>();
        private int events;
        private long bytes;

        BatchBuilder(int lane) {
            this.lane = lane;
        }

        void takeFrom(Deque<PublishCall> queue, long beforeSequence) {
            for (PublishCall call = queue.peek(); call != null; call = queue.peek()) {
                boolean fits = calls.isEmpty()
                        || (events + call.events().size() <= maxBatchEvents && bytes + call.bytes() <= maxBatchBytes);
                if (!fits || call.sequence() > beforeSequence) {
                    return;
                }
                queue.remove();
                if (call.isCompleted()) { // its deadline passed while it waited
                    release(call);
                    continue;
                }
                if (call.hasNoKeys()) {
                    sticky.computeIfAbsent(call.stream(), stream -> stickyPartition(stream, lane));
                }
                call.setSent();
                calls.add(call);
                events += call.events().size();
                bytes += call.bytes();
            }
        }

        boolean isEmpty() {
            return calls.isEmpty();
        }

        @Nullable
        Batch build() {
            return calls.isEmpty() ? null : new Batch(calls, sticky, ++lastBatchNumber);
        }
    }

    /** The next of the lane's partitions, in turn. */
    private int stickyPartition(StreamSpec stream, int lane) {
        int turn = rotation.merge(stream, 1, Integer::sum) - 1;
        int ownPartitions = Math.max(1, (stream.partitions() - lane + lanes - 1) / lanes);
        return stream.partitions() < lanes ? 0 : lane + Math.floorMod(turn, ownPartitions) * lanes;
    }

    /** A number for a part of a batch that is on its way; greater than all before. */
    long nextBatchNumber() {
        lock.lock();
        try {
            return ++lastBatchNumber;
        } finally {
            lock.unlock();
        }
    }

    /** The batch is no longer on its way, whatever became of it. */
    void done(Batch batch) {
        lock.lock();
        try {
            underWay.remove(batch);
            batch.calls().forEach(this::release);
            if (wideUnderWay) {
                wideUnderWay = false;
                workForLane.forEach(Condition::signal);
            } else if (!wide.isEmpty()) {
                workForLane.forEach(Condition::signal);
            }
            spaceFreed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void release(PublishCall call) {
        bufferedBytes -= call.bytes();
    }

    /** Fails the calls whose deadline has passed: what was never sent is not stored, the rest is unknown. */
    void expire(long nowNanos, @Nullable Throwable lastFailure) {
        List<PublishCall> expired = new ArrayList<>();
        lock.lock();
        try {
            for (Deque<PublishCall> queue : ofLane) {
                takeExpired(queue, nowNanos, expired);
            }
            takeExpired(ofAnyLane, nowNanos, expired);
            takeExpired(wide, nowNanos, expired);
            for (Batch batch : underWay) {
                for (PublishCall call : batch.calls()) {
                    if (call.deadlineNanos() - nowNanos <= 0 && !call.isCompleted()) {
                        expired.add(call);
                    }
                }
            }
            if (!expired.isEmpty()) {
                spaceFreed.signalAll();
            }
        } finally {
            lock.unlock();
        }
        for (PublishCall call : expired) {
            if (call.isSent()) {
                call.unknown("the database did not answer until the deadline", lastFailure);
            } else {
                call.notStored("it was not sent until the deadline (settings.publishTimeout)", lastFailure);
            }
        }
    }

    private void takeExpired(Deque<PublishCall> queue, long nowNanos, List<PublishCall> expired) {
        // All calls have the same time to live, so the first in a queue is the first to expire.
        for (PublishCall call = queue.peek(); call != null; call = queue.peek()) {
            if (call.deadlineNanos() - nowNanos > 0) {
                return;
            }
            queue.remove();
            release(call);
            expired.add(call);
        }
    }

    /** Takes the calls without keys that were never sent: another shard may have them. */
    List<PublishCall> takeMovable() {
        lock.lock();
        try {
            List<PublishCall> movable = new ArrayList<>(ofAnyLane);
            ofAnyLane.clear();
            movable.forEach(this::release);
            spaceFreed.signalAll();
            return movable;
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

    boolean isEmpty() {
        lock.lock();
        try {
            return underWay.isEmpty()
                    && ofAnyLane.isEmpty()
                    && wide.isEmpty()
                    && ofLane.stream().allMatch(Deque::isEmpty);
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
            workForLane.forEach(Condition::signal);
        } finally {
            lock.unlock();
        }
    }

    /** Fails everything that is left, sent or not. */
    void abandon() {
        expire(Long.MAX_VALUE / 2 + System.nanoTime(), null);
    }

    /** Waits at most the given time for space to be freed or work to end; for tests and orderly ends. */
    boolean awaitEmpty(long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        lock.lockInterruptibly();
        try {
            while (!isEmpty()) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    return false;
                }
                spaceFreed.awaitNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(100)));
            }
            return true;
        } finally {
            lock.unlock();
        }
    }
}
