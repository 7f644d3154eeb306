package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handles the keys of one partition in parallel: a lane for each key that has events, in which they follow one another;
 * events without a key have a lane each. The partition's offset advances only past what is done; after a crash what was
 * done beyond it is handled again. Thread-safe.
 */
final class KeyLanes {
    private static final Logger LOG = LoggerFactory.getLogger(KeyLanes.class);

    private final ShardMember member;
    private final OwnedPartition partition;
    private final Attempts attempts;
    private final Failures failures;
    private final ExecutorService virtualThreads;
    private final Semaphore places;
    private final int waitingMax;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition fewer = lock.newCondition();
    private final Map<String, Queue<StoredEvent>> lanes = new HashMap<>();
    private int waiting;

    KeyLanes(
            ShardMember member,
            OwnedPartition partition,
            Attempts attempts,
            Failures failures,
            int keyConcurrency,
            ExecutorService virtualThreads) {
        this.member = member;
        this.partition = partition;
        this.attempts = attempts;
        this.failures = failures;
        this.virtualThreads = virtualThreads;
        this.places = new Semaphore(keyConcurrency, true);
        this.waitingMax = member.spec().pageEvents();
    }

    /** Puts a page into the lanes; returns when these have room for another one. */
    void handle(List<StoredEvent> page) {
        for (StoredEvent event : page) {
            partition.laneTakes();
            put(event);
        }
        await(waitingMax);
    }

    /** Waits until everything in the lanes is done, or will not be done because the partition ends. */
    void awaitEmpty() {
        await(0);
    }

    private void await(int most) {
        lock.lock();
        try {
            while (waiting > most) {
                fewer.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }

    private void put(StoredEvent event) {
        @Nullable String key = event.key();
        Queue<StoredEvent> lane;
        lock.lock();
        try {
            waiting++;
            lane = key == null ? null : lanes.get(key);
            if (lane != null) {
                lane.add(event);
                return;
            }
            lane = new ArrayDeque<>(List.of(event));
            if (key != null) {
                lanes.put(key, lane);
            }
        } finally {
            lock.unlock();
        }
        start(key, lane);
    }

    private void start(@Nullable String key, Queue<StoredEvent> lane) {
        try {
            virtualThreads.execute(() -> run(key, lane));
        } catch (RejectedExecutionException e) { // closed meanwhile
            LOG.debug("no longer handling {}", member.name(partition), e);
            partition.giveUp();
            run(key, lane); // does nothing but count down
        }
    }

    private void run(@Nullable String key, Queue<StoredEvent> lane) {
        HandlerClock clock = partition.newClock();
        for (StoredEvent event = next(key, lane); event != null; event = next(key, lane)) {
            places.acquireUninterruptibly();
            try {
                handle(event, clock);
            } catch (RuntimeException | Error e) { // a fault of ours, not of the handler
                LOG.error("Handling {} failed", event.position(), e);
                failures.stop(member, partition, "internal error: " + e);
            } finally {
                places.release();
                done();
            }
        }
        partition.endClock(clock);
    }

    /** Does nothing once the partition ends: the event comes again, to whoever holds it then. */
    private void handle(StoredEvent event, HandlerClock clock) {
        if (partition.isParked(event.key())) {
            failures.parkBehind(member, partition, List.of(event));
        } else {
            attempts.handle(member, partition, List.of(event), clock);
        }
    }

    private @Nullable StoredEvent next(@Nullable String key, Queue<StoredEvent> lane) {
        lock.lock();
        try {
            StoredEvent event = lane.poll();
            if (event == null && key != null) {
                lanes.remove(key);
            }
            return event;
        } finally {
            lock.unlock();
        }
    }

    private void done() {
        lock.lock();
        try {
            waiting--;
            fewer.signalAll();
        } finally {
            lock.unlock();
        }
        partition.laneDone();
        if (partition.isEnding() && !partition.isHandling()) {
            member.threads().keeper().drained();
        }
    }
}
