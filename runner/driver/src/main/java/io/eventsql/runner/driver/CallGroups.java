package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Makes the calls of blocking clients asynchronous, with a few lanes of one thread each. While a lane writes, further
 * calls gather, and become its next group: a group commit, or a pipeline on a shared connection. A lane with 1,000
 * waiting calls, or two full groups, blocks the caller. Calls with one keyed event use the lane of the key, so that
 * they keep their order. Calls with several keyed events all use one lane, and calls without keys are distributed in
 * rotation. Thread-safe.
 */
public final class CallGroups implements AutoCloseable {
    private static final int QUEUED_CALLS_MIN = 1_000;
    private static final long CLOSE_SECONDS = 10;

    /** Stores the events of a group. */
    @FunctionalInterface
    public interface Writer {
        /** Returns when the events are stored. Throws if some are not: all calls of the group then fail. */
        void write(List<Event> events) throws Exception;
    }

    private record Call(List<Event> events, CompletableFuture<@Nullable Void> stored) {
        boolean isEnd() {
            return events.isEmpty();
        }
    }

    private static final Call END = new Call(List.of(), new CompletableFuture<>());

    private final int groupEvents;
    private final Writer writer;
    private final List<BlockingQueue<Call>> queues = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicLong turn = new AtomicLong();
    private volatile boolean closed;

    /**
     * @param lanes the number of threads, at least 1
     * @param groupEvents the number of events from which a group takes no further call; with 1, each call is a group
     * @param writer stores the groups, concurrently for different lanes
     */
    public CallGroups(int lanes, int groupEvents, Writer writer) {
        this.groupEvents = groupEvents;
        this.writer = writer;
        for (int lane = 0; lane < lanes; lane++) {
            BlockingQueue<Call> queue = new ArrayBlockingQueue<>(Math.max(QUEUED_CALLS_MIN, 2 * groupEvents));
            queues.add(queue);
            threads.add(Thread.ofPlatform().daemon().name("call-groups-" + lane).start(() -> writeGroups(queue)));
        }
    }

    /** Submits a call. The future completes when its group is stored, and fails with the exception of the writer. */
    public CompletableFuture<@Nullable Void> submit(List<Event> events) {
        Call call = new Call(events, new CompletableFuture<>());
        try {
            if (closed) {
                throw new IllegalStateException("closed");
            }
            queues.get(laneOf(events)).put(call);
            return call.stored;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while the call was queued", e);
        }
    }

    /**
     * Returns a target that makes asynchronous calls in groups.
     *
     * @param grouped whether calls that wait are grouped as well, instead of each being written on its own
     */
    public PublishTarget target(boolean grouped) {
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                if (grouped) {
                    submit(events).join();
                    return;
                }
                try {
                    writer.write(events);
                } catch (RuntimeException e) {
                    throw e;
                } catch (Exception e) {
                    throw new IllegalStateException("Publishing failed: " + e.getMessage(), e);
                }
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return submit(events);
            }
        };
    }

    private int laneOf(List<Event> events) {
        String key = events.getFirst().key();
        if (key == null) {
            return Math.floorMod(turn.getAndIncrement(), queues.size());
        }
        return events.size() == 1 ? Math.floorMod(key.hashCode(), queues.size()) : 0;
    }

    private void writeGroups(BlockingQueue<Call> queue) {
        try {
            for (Call first = queue.take(); !first.isEnd(); first = queue.take()) {
                List<Call> calls = new ArrayList<>(List.of(first));
                List<Event> events = first.events;
                if (events.size() < groupEvents) {
                    events = new ArrayList<>(events);
                    for (Call next = queue.peek();
                            next != null && !next.isEnd() && events.size() < groupEvents;
                            next = queue.peek()) {
                        calls.add(queue.remove());
                        events.addAll(next.events);
                    }
                }
                write(calls, events);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void write(List<Call> calls, List<Event> events) {
        try {
            writer.write(events);
            calls.forEach(call -> call.stored.complete(null));
        } catch (Exception e) {
            calls.forEach(call -> call.stored.completeExceptionally(e));
        }
    }

    /** Completes queued calls, for at most 10 seconds. */
    @Override
    public void close() {
        closed = true;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(CLOSE_SECONDS);
        try {
            for (int lane = 0; lane < threads.size(); lane++) {
                if (queues.get(lane).offer(END, deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    threads.get(lane).join(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
                }
                threads.get(lane).interrupt();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
