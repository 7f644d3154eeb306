package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The events of one partition that wait in lanes or are being handled: one lane for each key, in which events keep their
 * order, and one for each event without a key. The permits limit how many lanes call the handler at the same time.
 * Thread-safe.
 */
final class KeyQueues {
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition decreased = lock.newCondition();
    private final Map<String, Lane> lanes = new HashMap<>();
    private int unfinished;
    private final Semaphore permits;

    KeyQueues(int keyConcurrency) {
        this.permits = new Semaphore(keyConcurrency, true);
    }

    /** The events of one key. */
    static final class Lane {
        private final @Nullable String key;
        private @Nullable StoredEvent first;
        /** Those after the first one; {@code null} until there are two, as most lanes have one at a time. */
        private @Nullable Queue<StoredEvent> others;

        private Lane(@Nullable String key, StoredEvent first) {
            this.key = key;
            this.first = first;
        }

        private void add(StoredEvent event) {
            if (first == null) {
                first = event;
                return;
            }
            if (others == null) {
                others = new ArrayDeque<>();
            }
            others.add(event);
        }

        private @Nullable StoredEvent poll() {
            StoredEvent event = first;
            first = others == null ? null : others.poll();
            return event;
        }
    }

    /**
     * Adds an event to its lane.
     *
     * @return the lane if it is new: a thread must be started for it; otherwise {@code null}
     */
    @Nullable
    Lane add(StoredEvent event) {
        @Nullable String key = event.key();
        lock.lock();
        try {
            unfinished++;
            Lane lane = key == null ? null : lanes.get(key);
            if (lane != null) {
                lane.add(event);
                return null;
            }
            lane = new Lane(key, event);
            if (key != null) {
                lanes.put(key, lane);
            }
            return lane;
        } finally {
            lock.unlock();
        }
    }

    /** Removes the lane's next event; returns {@code null} if there is none, and then removes the lane. */
    @Nullable
    StoredEvent poll(Lane lane) {
        lock.lock();
        try {
            StoredEvent event = lane.poll();
            if (event == null && lane.key != null) {
                lanes.remove(lane.key);
            }
            return event;
        } finally {
            lock.unlock();
        }
    }

    /** The permits to call the handler: one for each lane that does so at the same time. */
    Semaphore permits() {
        return permits;
    }

    /** Counts an event as finished: handled, or left to the next owner because the partition ends. */
    void finish() {
        lock.lock();
        try {
            unfinished--;
            decreased.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Waits until at most the given number of events is unfinished. */
    void awaitAtMost(int events) {
        lock.lock();
        try {
            while (unfinished > events) {
                decreased.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }

    boolean isEmpty() {
        lock.lock();
        try {
            return unfinished == 0;
        } finally {
            lock.unlock();
        }
    }
}
