package io.eventsql.internal.consume;

import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.thread.Timeouts;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * The deadlines of closing, as {@link System#nanoTime()}. Running handlers must end first, because releasing partitions,
 * committing offsets and appending buffered events takes time, too.
 *
 * @param handlersNanos when running handlers are no longer waited for
 * @param endNanos when everything must have ended
 */
public record CloseDeadline(long handlersNanos, long endNanos) {
    private static final int RESERVE_PARTS = 5;
    private static final long RESERVE_NANOS_MAX = TimeUnit.SECONDS.toNanos(5);
    /** A short timeout must not prevent releasing the partitions: other members would wait for the lease to expire. */
    private static final long RELEASE_NANOS_MIN = TimeUnit.SECONDS.toNanos(1);

    private static final long JOIN_MAX_MS = 1_000;

    /** Returns the deadlines for a timeout that begins now. */
    public static CloseDeadline after(Duration timeout) {
        long timeoutNanos = Timeouts.nanos(timeout);
        long reserve = Math.min(timeoutNanos / RESERVE_PARTS, RESERVE_NANOS_MAX);
        long handlers = System.nanoTime() + timeoutNanos - reserve;
        return new CloseDeadline(handlers, handlers + Math.max(reserve, RELEASE_NANOS_MIN));
    }

    /** Waits for a thread that is being closed, briefly and at most until the end; then interrupts it. */
    void join(ServiceThread thread) throws InterruptedException {
        try {
            thread.join(Math.clamp(endNanos - System.nanoTime(), 1, TimeUnit.MILLISECONDS.toNanos(JOIN_MAX_MS)));
        } finally {
            thread.closeNow();
        }
    }
}
