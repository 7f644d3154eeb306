package io.eventsql.internal.thread;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A daemon thread of the library that repeats a task until it is closed. Nothing else ends it: no exception, no {@link
 * Error}, and no interrupt left behind by foreign code that ran on it. Thread-safe.
 *
 * <p>A task handles the failures it expects, such as an unavailable database. A failure that it throws is unexpected: it is
 * logged as an error, and the task is repeated after a pause.
 */
public final class ServiceThread {
    private static final Logger LOG = LoggerFactory.getLogger(ServiceThread.class);
    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 5_000;
    private static final int RETRY_DOUBLINGS_MAX = 10;
    /** Failed repetitions of all threads of this process. */
    private static final AtomicLong FAILURES = new AtomicLong();
    /** Those of this process whose last repetition failed. */
    private static final Set<ServiceThread> FAILING = ConcurrentHashMap.newKeySet();

    private final String name;
    private final Task task;
    private final Thread thread;
    private volatile boolean closing;
    private volatile @Nullable Throwable failure;

    /** One repetition; usually waits until there is something to do. */
    @FunctionalInterface
    public interface Task {
        /**
         * Runs once.
         *
         * @throws InterruptedException ends the thread only while it is being closed
         */
        void run() throws Exception;
    }

    /** Creates the thread, which {@link #start} starts. */
    public ServiceThread(String name, Task task) {
        this.name = name;
        this.task = task;
        this.thread = new Thread(this::repeat, name);
        thread.setDaemon(true);
    }

    public void start() {
        thread.start();
    }

    private void repeat() {
        int failures = 0;
        while (!closing) {
            try {
                clearStrayInterrupt();
                task.run();
                failures = 0;
                recordSuccess();
            } catch (InterruptedException e) {
                reportInterrupt(e);
            } catch (Throwable e) {
                failure = e;
                FAILURES.incrementAndGet();
                FAILING.add(this);
                pauseAfter(e, failures++);
            }
        }
        FAILING.remove(this);
    }

    private void recordSuccess() {
        if (failure != null) {
            failure = null;
            FAILING.remove(this);
        }
    }

    private void clearStrayInterrupt() {
        if (!closing && Thread.interrupted()) {
            reportInterrupt(new InterruptedException("interrupted before it began to wait"));
        }
    }

    private void reportInterrupt(InterruptedException e) {
        if (!closing) {
            LOG.warn("Thread {} was interrupted by foreign code; continuing", name, e);
        }
    }

    private void pauseAfter(Throwable e, int failures) {
        if (closing) {
            return;
        }
        long retryMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, RETRY_DOUBLINGS_MAX));
        try {
            LOG.error("Thread {} failed unexpectedly; continuing in {} ms", name, retryMs, e);
            TimeUnit.MILLISECONDS.sleep(retryMs);
        } catch (Throwable again) { // out of memory, even for logging, or an interrupt
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(RETRY_MIN_MS));
        }
    }

    /** Returns the threads of this process whose last repetition failed, by name, with the failures. */
    public static Map<String, Throwable> failures() {
        Map<String, Throwable> failures = new TreeMap<>();
        for (ServiceThread thread : FAILING) {
            @Nullable Throwable failure = thread.failure;
            if (failure != null) {
                failures.put(thread.name, failure);
            }
        }
        return failures;
    }

    /** Returns how many repetitions of all threads of this process have failed. */
    public static long failureCount() {
        return FAILURES.get();
    }

    /** Returns why the last repetition failed; {@code null} if it did not. */
    public @Nullable Throwable failure() {
        return failure;
    }

    public boolean isAlive() {
        return thread.isAlive();
    }

    @Override
    public String toString() {
        return "Thread " + name;
    }

    /** Returns whether the caller runs on this thread. */
    public boolean isCurrent() {
        return thread.equals(Thread.currentThread());
    }

    /** Wakes the task if it waits with {@link LockSupport#park}. */
    public void unpark() {
        LockSupport.unpark(thread);
    }

    /** Returns whether the thread ends after its current repetition. */
    public boolean isClosing() {
        return closing;
    }

    /** Lets the thread end after its current repetition. The caller wakes the task if it waits. */
    public void close() {
        closing = true;
    }

    /** Lets the thread end now: interrupts its current repetition. */
    public void closeNow() {
        closing = true;
        thread.interrupt();
    }

    /**
     * Waits until the thread has ended, at most for the given time.
     *
     * @return whether it has ended
     */
    public boolean join(long timeoutNanos) throws InterruptedException {
        if (timeoutNanos > 0) {
            TimeUnit.NANOSECONDS.timedJoin(thread, timeoutNanos);
        }
        return !thread.isAlive();
    }
}
