package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class IdleThreadsTest {
    private final ReentrantLock lock = new ReentrantLock();
    private final IdleThreads idle = new IdleThreads(lock);
    private final List<String> woken = new CopyOnWriteArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void endThreads() {
        threads.forEach(Thread::interrupt);
    }

    /** Starts a thread that waits, and returns when it does. */
    private Thread startWaiting(String name) {
        Thread thread = new Thread(() -> {
            lock.lock();
            try {
                idle.await();
                woken.add(name);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                lock.unlock();
            }
        });
        threads.add(thread);
        thread.start();
        await().until(() -> thread.getState() == Thread.State.WAITING);
        return thread;
    }

    private void locked(Runnable task) {
        lock.lock();
        try {
            task.run();
        } finally {
            lock.unlock();
        }
    }

    @Test
    void wake_severalWait_wakesTheLastOne() {
        startWaiting("first");
        startWaiting("second");
        startWaiting("third");
        locked(() -> {
            idle.wake();
            assertThat(idle.isWaking()).isTrue();
        });
        await().until(() -> woken.size() == 1);
        locked(() -> {
            assertThat(idle.isWaking()).isFalse();
            assertThat(idle.isEmpty()).isFalse();
            idle.wake();
        });
        await().until(() -> woken.size() == 2);
        assertThat(woken).containsExactly("third", "second");
    }

    @Test
    void wake_threadIsInterruptedFirst_anotherOneIsWoken() {
        startWaiting("other");
        Thread interrupted = startWaiting("interrupted");
        locked(() -> {
            interrupted.interrupt();
            await().until(() -> lock.hasQueuedThread(interrupted)); // it waits for the lock, not to be woken any more
            idle.wake();
        });
        await().until(() -> woken.size() == 1);
        assertThat(woken).containsExactly("other");
        locked(() -> assertThat(idle.isWaking()).isFalse());
    }

    @Test
    void await_interrupted_isNotWokenAnyMore() throws InterruptedException {
        startWaiting("other");
        Thread interrupted = startWaiting("interrupted");
        interrupted.interrupt();
        interrupted.join();
        locked(idle::wake);
        await().until(() -> woken.size() == 1);
        assertThat(woken).containsExactly("other");
        locked(() -> assertThat(idle.isEmpty()).isTrue());
    }

    @Test
    void wakeAll_severalWait_wakesEach() {
        startWaiting("first");
        startWaiting("second");
        locked(idle::wakeAll);
        await().until(() -> woken.size() == 2);
    }
}
