package io.eventsql.runner.load;

import io.eventsql.Event;
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
    public long run(LoadPhase phase, LoadListener listener) {
        awaitStart(phase);
        EventNumbers numbers = new EventNumbers(phase.events(), parts.eventsPerCall());
        List<Future<Long>> running = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (KeyShare keys : parts.source().shares(callers)) {
                running.add(threads.submit(() -> call(phase, listener, numbers, keys)));
            }
        }
        long sent = running.stream().mapToLong(Callers::sent).sum();
        AsyncCall.awaitAnswers(parts, listener, sent);
        return sent;
    }

    private void awaitStart(LoadPhase phase) {
        long remaining = phase.startNanos() - parts.clock().nanos();
        while (remaining > 0 && !parts.stop().isRaised()) {
            parts.clock().parkNanos(remaining);
            remaining = phase.startNanos() - parts.clock().nanos();
        }
    }

    /** What one caller does until the phase ends; returns how many events it sent. */
    private long call(LoadPhase phase, LoadListener listener, EventNumbers numbers, KeyShare keys) {
        long sent = 0;
        while (!parts.stop().isRaised()) {
            long intended = parts.clock().nanos();
            if (intended >= phase.endNanos()) {
                break;
            }
            long first = numbers.claim();
            if (first == EventNumbers.NONE) {
                break;
            }
            int count = numbers.count(first);
            List<Event> events = parts.source()
                    .events(keys, phase.warmup(), first, count, phase.anchor().epochMicrosAt(intended));
            if (waiting) {
                publish(events, intended, listener);
            } else {
                AsyncCall.send(parts, listener, events, intended);
            }
            sent += count;
        }
        return sent;
    }

    private void publish(List<Event> events, long intended, LoadListener listener) {
        try {
            parts.target().publish(events);
            listener.acknowledged(intended, parts.clock().nanos(), events.size());
        } catch (RuntimeException e) {
            listener.failed(intended, parts.clock().nanos(), events.size(), e);
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
