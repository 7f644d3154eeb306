package io.eventsql.spring.boot;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A look at a database that may hang for as long as its pool and its network let it, while nobody waits longer than they
 * want to: one thread at most runs it, and who comes meanwhile waits for the same answer. Thread-safe.
 */
final class BoundedCheck<T> {
    private final String name;
    private final Callable<T> check;
    private @Nullable CompletableFuture<T> running;

    BoundedCheck(String name, Callable<T> check) {
        this.name = name;
        this.check = check;
    }

    /** Starts it, unless it is under way. */
    synchronized Answer<T> start() {
        CompletableFuture<T> current = running;
        if (current == null || current.isDone()) {
            CompletableFuture<T> next = new CompletableFuture<>();
            running = next;
            Thread.ofPlatform().daemon().name("eventsql-health-" + name).start(() -> run(next));
            current = next;
        }
        return new Answer<>(current);
    }

    private void run(CompletableFuture<T> answer) {
        try {
            answer.complete(check.call());
        } catch (Exception | Error e) { // whatever a data source throws
            answer.completeExceptionally(e);
        }
    }

    /** What it says, once it does. */
    record Answer<T>(CompletableFuture<T> future) {
        /**
         * Waits for it until the deadline.
         *
         * @param deadlineNanos as {@link System#nanoTime()}
         * @throws TimeoutException if it is still under way
         * @throws ExecutionException if it failed
         */
        T await(long deadlineNanos) throws TimeoutException, ExecutionException {
            long left = Math.max(0, deadlineNanos - System.nanoTime());
            try {
                return future.get(left, TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new TimeoutException("interrupted");
            }
        }
    }

    /** The moment from which on nobody waits. */
    static long deadline(Duration timeout) {
        return System.nanoTime() + timeout.toNanos();
    }
}
