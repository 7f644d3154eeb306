package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Makes the calls of blocking clients asynchronous, with a few threads and a bounded queue for each. A full queue
 * blocks the caller. Calls with one keyed event run on the thread of the key, so that they keep their order. Calls with
 * several keyed events all run on one thread, and calls without keys are distributed in rotation. Thread-safe.
 */
public final class KeyedExecutor implements AutoCloseable {
    private static final int QUEUED_CALLS_MAX = 1_000;
    private static final long CLOSE_SECONDS = 10;

    private final List<ThreadPoolExecutor> threads = new ArrayList<>();
    private final AtomicLong turn = new AtomicLong();

    /** @param threadCount the number of threads, at least 1 */
    public KeyedExecutor(int threadCount) {
        for (int i = 0; i < threadCount; i++) {
            threads.add(new ThreadPoolExecutor(
                    1,
                    1,
                    0,
                    TimeUnit.SECONDS,
                    new ArrayBlockingQueue<>(QUEUED_CALLS_MAX),
                    Thread.ofPlatform().daemon().name("keyed-executor-" + i).factory(),
                    KeyedExecutor::blockUntilQueued));
        }
    }

    /** Submits a call. The stage completes when the call returns, and fails with its exception. */
    public CompletionStage<?> submit(List<Event> events, Runnable call) {
        return CompletableFuture.runAsync(call, threads.get(threadOf(events)));
    }

    private int threadOf(List<Event> events) {
        String key = events.getFirst().key();
        if (key == null) {
            return Math.floorMod(turn.getAndIncrement(), threads.size());
        }
        return events.size() == 1 ? Math.floorMod(key.hashCode(), threads.size()) : 0;
    }

    private static void blockUntilQueued(Runnable call, ThreadPoolExecutor thread) {
        try {
            if (thread.isShutdown()) {
                throw new IllegalStateException("closed");
            }
            thread.getQueue().put(call);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while the call was queued", e);
        }
    }

    /** Completes queued calls, for at most 10 seconds. */
    @Override
    public void close() {
        threads.forEach(ThreadPoolExecutor::shutdown);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(CLOSE_SECONDS);
        for (ThreadPoolExecutor thread : threads) {
            try {
                if (!thread.awaitTermination(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    thread.shutdownNow();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                thread.shutdownNow();
            }
        }
    }
}
