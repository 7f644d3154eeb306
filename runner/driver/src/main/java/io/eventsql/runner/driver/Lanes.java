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
public final class Lanes implements AutoCloseable {
    private static final int QUEUED_CALLS_MAX = 1_000;
    private static final long CLOSE_SECONDS = 10;

    private final List<ThreadPoolExecutor> lanes = new ArrayList<>();
    private final AtomicLong turn = new AtomicLong();

    /** @param threads 1 or more */
    public Lanes(int threads) {
        for (int i = 0; i < threads; i++) {
            lanes.add(new ThreadPoolExecutor(
                    1,
                    1,
                    0,
                    TimeUnit.SECONDS,
                    new ArrayBlockingQueue<>(QUEUED_CALLS_MAX),
                    Thread.ofPlatform().daemon().name("lane-" + i).factory(),
                    Lanes::waitForPlace));
        }
    }

    /** The call's stage: it completes when the call returns, or fails as it does. */
    public CompletionStage<?> call(List<Event> events, Runnable call) {
        return CompletableFuture.runAsync(call, lanes.get(laneOf(events)));
    }

    private int laneOf(List<Event> events) {
        String key = events.getFirst().key();
        if (key == null) {
            return Math.floorMod(turn.getAndIncrement(), lanes.size());
        }
        return events.size() == 1 ? Math.floorMod(key.hashCode(), lanes.size()) : 0;
    }

    private static void waitForPlace(Runnable call, ThreadPoolExecutor lane) {
        try {
            if (lane.isShutdown()) {
                throw new IllegalStateException("closed");
            }
            lane.getQueue().put(call);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while the call waited for its turn", e);
        }
    }

    /** Makes the calls that wait, for at most 10 seconds. */
    @Override
    public void close() {
        lanes.forEach(ThreadPoolExecutor::shutdown);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(CLOSE_SECONDS);
        for (ThreadPoolExecutor lane : lanes) {
            try {
                if (!lane.awaitTermination(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    lane.shutdownNow();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                lane.shutdownNow();
            }
        }
    }
}
