package io.eventsql.spring.internal.actuate;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A check of a database that may hang as long as its pool and network allow, while callers wait at most until their
 * deadline. One thread at most runs it; concurrent callers share its result. Thread-safe.
 */
final class BoundedCheck<T> {
    private final Callable<T> check;
    private final Executor threads;
    private @Nullable CompletableFuture<T> running;

    /** @param name what is checked, for the thread */
    BoundedCheck(String name, Callable<T> check) {
        this(check, threads(name));
    }

    /** @param threads starts a thread for each run of the check */
    BoundedCheck(Callable<T> check, Executor threads) {
        this.check = check;
        this.threads = threads;
    }

    private static Executor threads(String name) {
        Thread.Builder thread = Thread.ofPlatform().daemon().name("eventsql-health-" + name);
        return thread::start;
    }

    /** Starts the check unless it is in progress. */
    synchronized Pending<T> start() {
        CompletableFuture<T> current = running;
        if (current == null || current.isDone()) {
            CompletableFuture<T> next = new CompletableFuture<>();
            threads.execute(() -> run(next)); // can fail for lack of memory: then the next caller starts a check
            running = next;
            current = next;
        }
        return new Pending<>(current);
    }

    private void run(CompletableFuture<T> result) {
        try {
            result.complete(check.call());
        } catch (Exception | Error e) { // whatever a data source throws
            result.completeExceptionally(e);
        }
    }

    /** The result of a check in progress. */
    record Pending<T>(CompletableFuture<T> future) {
        /**
         * Returns the result; waits for it until the deadline.
         *
         * @param deadlineNanos as {@link System#nanoTime()}
         * @throws TimeoutException if the check is still in progress
         * @throws ExecutionException if the check failed
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

    /** Returns the deadline that is this timeout from now. */
    static long deadline(Duration timeout) {
        return System.nanoTime() + timeout.toNanos();
    }
}
