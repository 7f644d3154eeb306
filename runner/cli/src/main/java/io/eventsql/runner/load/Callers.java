package io.eventsql.runner.load;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Concurrent callers that call in a loop, as fast as the target allows. The intended time of a call is the time at
 * which it is made.
 */
public final class Callers implements LoadGenerator {
    private final LoadContext context;
    private final int callers;
    private final boolean waiting;

    private Callers(LoadContext context, int callers, boolean waiting) {
        this.context = context;
        this.callers = callers;
        this.waiting = waiting;
    }

    /**
     * Creates callers that wait for each answer before the next call.
     *
     * @param callers the number of callers, at least 1 and at most the number of keys, if there are any
     */
    public static Callers waiting(LoadContext context, int callers) {
        return new Callers(context, callers, true);
    }

    /** Creates callers that never wait for an answer. Only a blocking target slows them down. */
    public static Callers notWaiting(LoadContext context, int callers) {
        return new Callers(context, callers, false);
    }

    @Override
    public long send(LoadPhase phase, LoadListener listener) {
        awaitStart(phase);
        AtomicLong taken = new AtomicLong();
        List<Future<Long>> running = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (KeyShare keys : context.source().splitKeys(callers)) {
                // Each caller starts with another stream, so that they do not all call the same one.
                int firstStream = running.size();
                running.add(threads.submit(() -> call(phase, listener, taken, keys, firstStream)));
            }
        }
        return running.stream().mapToLong(Callers::awaitSent).sum();
    }

    @Override
    public LoadContext context() {
        return context;
    }

    private void awaitStart(LoadPhase phase) {
        long remaining = phase.startNanos() - context.clock().nanos();
        while (remaining > 0 && !context.stop().isRaised()) {
            context.clock().parkNanos(remaining);
            remaining = phase.startNanos() - context.clock().nanos();
        }
    }

    /**
     * Runs one caller until the phase ends.
     *
     * @param taken the events of the phase that its callers have taken; the last call may get fewer
     * @return the number of sent events
     */
    private long call(LoadPhase phase, LoadListener listener, AtomicLong taken, KeyShare keys, int firstStream) {
        long sent = 0;
        for (long turn = firstStream; !context.stop().isRaised(); turn++) {
            long intended = context.clock().nanos();
            if (intended >= phase.endNanos()) {
                break;
            }
            int perCall = context.eventsPerCall();
            int count = Math.clamp(phase.events() - taken.getAndAdd(perCall), 0, perCall);
            if (count == 0) {
                break;
            }
            LoadCall call = context.nextCall(context.streamOf(turn), keys, phase, count, intended);
            if (waiting) {
                call.publish(context.clock(), listener);
            } else {
                call.publishAsync(context.clock(), listener);
            }
            sent += count;
        }
        return sent;
    }

    private static long awaitSent(Future<Long> caller) {
        try {
            return caller.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("A caller failed: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while waiting for callers", e);
        }
    }
}
