package io.eventsql.internal.append;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Completes the futures of one shard's asynchronous calls, and so runs what the application has attached to them, on
 * virtual threads that the library does not need for anything else. Thread-safe.
 *
 * <p>Usually one worker completes all futures in the order of their outcomes; it ends when none waits. If a continuation
 * blocks, another worker takes over those that wait: a continuation may wait for a later call of the same batch. If a worker
 * does not begin, because the application's virtual threads occupy all processors or are pinned while they wait for these
 * futures, a platform thread takes over.
 */
final class Continuations implements Executor {
    private static final Logger LOG = LoggerFactory.getLogger(Continuations.class);
    private static final long CLOSE_CHECK_MS = 5;

    private final String threadName;
    private final Queue<Tasks> waiting = new ConcurrentLinkedQueue<>();
    /** The worker that takes what waits; {@code null} if none runs, or all are blocked and none took over yet. */
    private final AtomicReference<@Nullable Worker> active = new AtomicReference<>();

    private volatile boolean closed;

    Continuations(String shard) {
        threadName = "eventsql-continuations-" + shard;
    }

    /** The futures of one batch, completed in order, by one worker after the other or by several. */
    private static final class Tasks {
        private final List<Runnable> tasks;
        private final AtomicInteger next = new AtomicInteger();

        Tasks(List<Runnable> tasks) {
            this.tasks = tasks;
        }

        /** Returns the index of a task that no other worker takes, or one beyond the last. */
        int takeIndex() {
            return next.get() < tasks.size() ? next.getAndIncrement() : tasks.size();
        }
    }

    /** Adds a task; {@link #start} runs it, after {@link #close} a thread of its own. */
    @Override
    public void execute(Runnable task) {
        executeAll(List.of(task));
    }

    /** Adds the tasks of a batch, which are cheaper together; {@link #start} runs them. The list does not change any more. */
    void executeAll(List<Runnable> tasks) {
        if (!tasks.isEmpty()) {
            waiting.add(new Tasks(tasks));
            if (closed) { // nothing calls start any more
                startThreads();
            }
        }
    }

    /** Returns the next task; {@code null} if none waits. */
    private @Nullable Runnable take() {
        for (Tasks first = waiting.peek(); first != null; first = waiting.peek()) {
            int index = first.takeIndex();
            if (index >= first.tasks.size() - 1) {
                waiting.remove(first);
            }
            if (index < first.tasks.size()) {
                return first.tasks.get(index);
            }
        }
        return null;
    }

    /** Starts a worker if tasks wait and none runs. */
    void start() {
        if (!waiting.isEmpty() && active.get() == null) {
            replace(null);
        }
    }

    /**
     * Lets another worker take over if the active one runs the same task as at the last call, or has not begun since. For one
     * thread.
     */
    void overtakeBlocked() {
        Worker worker = active.get();
        if (worker == null) {
            start();
        } else if (worker.isBlocked() && !waiting.isEmpty()) {
            replace(worker);
        }
    }

    private void replace(@Nullable Worker previous) {
        Worker worker = new Worker();
        if (!active.compareAndSet(previous, worker)) {
            return;
        }
        try {
            if (previous == null || previous.hasBegun()) {
                startThread(worker);
            } else {
                Thread.ofPlatform()
                        .daemon()
                        .name(threadName)
                        .inheritInheritableThreadLocals(false)
                        .start(worker);
            }
        } catch (RuntimeException | Error e) { // the next call of overtakeBlocked starts one
            active.compareAndSet(worker, null);
            throw e;
        }
    }

    private void startThread(Runnable task) {
        Thread.ofVirtual()
                .name(threadName)
                .inheritInheritableThreadLocals(false)
                .start(task);
    }

    private final class Worker implements Runnable {
        /** Written by this worker's thread alone. */
        private final AtomicInteger taken = new AtomicInteger();

        private int takenBefore = -1;

        /** Returns whether it has taken no task since the last call. */
        boolean isBlocked() {
            int now = taken.getAcquire();
            boolean blocked = now == takenBefore;
            takenBefore = now;
            return blocked;
        }

        /** Returns the next task; {@code null} if none waits, or another worker has taken over. */
        private @Nullable Runnable takeIfActive() {
            return active.get() == this ? take() : null;
        }

        boolean hasBegun() {
            return taken.getAcquire() > 0;
        }

        @Override
        public void run() {
            do {
                for (Runnable task = takeIfActive(); task != null; task = takeIfActive()) {
                    taken.setRelease(taken.getPlain() + 1);
                    runTask(task);
                }
                // A task added after the last poll is taken here, unless another worker has become active.
            } while (active.compareAndSet(this, null) && !waiting.isEmpty() && active.compareAndSet(null, this));
        }
    }

    private void runTask(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) { // the futures catch what continuations throw; this is an Error of the JVM
            LOG.error("Thread {} failed unexpectedly; continuing with the next future", threadName, e);
        }
        if (Thread.interrupted()) {
            LOG.debug("A continuation has left an interrupt on thread {}", threadName);
        }
    }

    /** Waits until all futures are completed, at most until the deadline; then completes the rest concurrently. */
    void close(long deadlineNanos) throws InterruptedException {
        while (!waiting.isEmpty() && deadlineNanos - System.nanoTime() > 0) {
            overtakeBlocked();
            TimeUnit.MILLISECONDS.sleep(CLOSE_CHECK_MS);
        }
        closed = true;
        startThreads();
    }

    /** Completes the futures that wait, each on a thread of its own. */
    private void startThreads() {
        for (Runnable task = take(); task != null; task = take()) {
            Runnable late = task;
            Thread.ofPlatform().daemon().name(threadName).start(() -> runTask(late));
        }
    }
}
