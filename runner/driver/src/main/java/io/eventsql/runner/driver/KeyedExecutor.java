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
 * For clients that can only block: makes their calls for callers that do not wait, with a few threads, each with a
 * bounded queue. While the queue of its thread is full, a call's caller waits. Calls of one event with a key go to the key's thread, so they keep
 * their order; calls of several events with keys all go to one thread; calls without a key take turns. Thread-safe.
 */
public final class KeyedExecutor implements AutoCloseable {
    private static final int QUEUED_CALLS_MAX = 1_000;
    private static final long CLOSE_SECONDS = 10;

    private final List<ThreadPoolExecutor> threads = new ArrayList<>();
    private final AtomicLong turn = new AtomicLong();

    /** @param threadCount 1 or more */
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

    /** The call's stage: it completes when the call returns, or fails as it does. */
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
            throw new IllegalStateException("Interrupted while the call waited for its turn", e);
        }
    }

    /** Makes the calls that wait, for at most 10 seconds. */
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
