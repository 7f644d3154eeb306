package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * The virtual threads on which a member's handlers run, and the permits that limit how many of its partitions are
 * handled at the same time, on all shards together. Thread-safe.
 */
final class HandlerThreads {
    private final Semaphore permits;
    private final Executor executor;

    HandlerThreads(ConsumerSpec spec) {
        this(
                spec,
                Executors.newThreadPerTaskExecutor(Thread.ofVirtual()
                        .name("eventsql-" + spec.stream() + "-" + spec.name() + "-", 0)
                        .factory()));
    }

    /** @param executor starts a thread for each task */
    HandlerThreads(ConsumerSpec spec, Executor executor) {
        this.permits = new Semaphore(spec.concurrency(), true);
        this.executor = executor;
    }

    /**
     * Runs the task on a new thread.
     *
     * @throws RejectedExecutionException if the member is closed
     */
    void execute(Runnable task) {
        executor.execute(task);
    }

    /** The permits to handle pages: one for each partition that is handled at the same time. */
    Semaphore permits() {
        return permits;
    }

    /** Rejects further tasks and waits for those that run; returns {@code false} if one does at the deadline. */
    boolean shutdown(long deadlineNanos) throws InterruptedException {
        if (!(executor instanceof ExecutorService service)) {
            return true;
        }
        service.shutdown();
        return service.awaitTermination(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    }
}
