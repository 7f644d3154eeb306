package io.eventsql.internal.append;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * The append threads of a shard that wait for work. The one that came last is woken first: where one thread is enough, it is
 * always the same, and so is its connection, whose server process then has what it needs in the processor's caches. All
 * methods are called with the lock held.
 */
final class IdleThreads {
    private final Lock lock;
    /** The conditions of the threads that wait and were not woken, the last one first. */
    private final Deque<Condition> waiting = new ArrayDeque<>();
    /** The threads that were woken and have not got the lock yet. */
    private int waking;

    IdleThreads(Lock lock) {
        this.lock = lock;
    }

    /** Waits until woken. */
    void await() throws InterruptedException {
        Condition own = lock.newCondition();
        waiting.push(own);
        boolean done = false;
        try {
            while (waiting.contains(own)) {
                own.await();
            }
            done = true;
        } finally {
            if (!waiting.remove(own)) {
                waking--;
                if (!done) {
                    wake(); // what this thread was woken for is left to another one
                }
            }
        }
    }

    /** Returns whether no thread waits to be woken. */
    boolean isEmpty() {
        return waiting.isEmpty();
    }

    /** Returns whether a thread was woken that is not running yet. */
    boolean isWaking() {
        return waking > 0;
    }

    /** Wakes the thread that has waited for the shortest time; does nothing if none waits. */
    void wake() {
        Condition last = waiting.poll();
        if (last != null) {
            waking++;
            last.signal();
        }
    }

    void wakeAll() {
        while (!waiting.isEmpty()) {
            wake();
        }
    }
}
