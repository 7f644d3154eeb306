package io.eventsql.internal.consume;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Signals to the services of a member that it closes, and ends their delays. Thread-safe. */
final class CloseSignal {
    private static final Logger LOG = LoggerFactory.getLogger(CloseSignal.class);

    private final CountDownLatch closing = new CountDownLatch(1);

    void close() {
        closing.countDown();
    }

    boolean isClosing() {
        return closing.getCount() == 0;
    }

    /**
     * Waits for the delay; returns {@code true} at once when the member closes. Nothing in the library interrupts the
     * threads that wait here, so an interrupt was left by a handler or a listener: it neither ends the wait nor survives
     * it.
     */
    boolean isClosingAfter(long delayMs) {
        long endNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(delayMs);
        while (true) {
            try {
                return closing.await(endNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                LOG.debug("A handler or a listener left its thread interrupted; waiting on", e);
            }
        }
    }
}
