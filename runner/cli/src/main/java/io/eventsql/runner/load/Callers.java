package io.eventsql.runner.load;

import io.eventsql.runner.workload.KeyShare;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Concurrent callers that call again and again, as fast as the target lets them. The intended time of a call is the
 * moment it is made.
 */
public final class Callers implements LoadGenerator {
    private final LoadParts parts;
    private final int callers;
    private final boolean waiting;

    private Callers(LoadParts parts, int callers, boolean waiting) {
        this.parts = parts;
        this.callers = callers;
        this.waiting = waiting;
    }

    /**
     * Callers that wait for each answer before they call again.
     *
     * @param callers at least 1, and no more than there are keys, if there are any
     */
    public static Callers waiting(LoadParts parts, int callers) {
        return new Callers(parts, callers, true);
    }

    /** Callers that never wait for an answer: only a target that blocks slows them down. */
    public static Callers notWaiting(LoadParts parts, int callers) {
        return new Callers(parts, callers, false);
    }

    @Override
    public long send(LoadPhase phase, LoadListener listener) {
        awaitStart(phase);
        EventQuota quota = new EventQuota(phase.events(), parts.eventsPerCall());
        List<Future<Long>> running = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (KeyShare keys : parts.source().shares(callers)) {
                // Each begins at another stream, so that they do not all call the same one.
                int firstStream = running.size();
                running.add(threads.submit(() -> call(phase, listener, quota, keys, firstStream)));
            }
        }
        return running.stream().mapToLong(Callers::sent).sum();
    }

    @Override
    public void awaitAnswers(LoadListener listener, long sentEvents) {
        AsyncCall.awaitAnswers(parts, listener, sentEvents);
    }

    private void awaitStart(LoadPhase phase) {
        long remaining = phase.startNanos() - parts.clock().nanos();
        while (remaining > 0 && !parts.stop().isRaised()) {
            parts.clock().parkNanos(remaining);
            remaining = phase.startNanos() - parts.clock().nanos();
        }
    }

    /** What one caller does until the phase ends; returns how many events it sent. */
    private long call(LoadPhase phase, LoadListener listener, EventQuota quota, KeyShare keys, int firstStream) {
        long sent = 0;
        for (long turn = firstStream; !parts.stop().isRaised(); turn++) {
            long intended = parts.clock().nanos();
            if (intended >= phase.endNanos()) {
                break;
            }
            int count = quota.take();
            if (count == 0) {
                break;
            }
            LoadCall call = parts.call(parts.stream(turn), keys, phase, count, intended);
            if (waiting) {
                publish(call, listener);
            } else {
                AsyncCall.send(parts, listener, call);
            }
            sent += count;
        }
        return sent;
    }

    private void publish(LoadCall call, LoadListener listener) {
        long intended = call.intendedNanos();
        int events = call.events().size();
        long called = parts.clock().nanos();
        listener.sent(intended, called, events);
        try {
            call.stream().target().publish(call.events());
            call.acknowledged();
            listener.acknowledged(intended, called, parts.clock().nanos(), events);
        } catch (RuntimeException e) {
            call.failed(e);
            listener.failed(intended, parts.clock().nanos(), events, e);
        }
    }

    private static long sent(Future<Long> caller) {
        try {
            return caller.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("A caller broke down: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while callers ended", e);
        }
    }
}
