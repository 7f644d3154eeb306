package io.eventsql.internal.consume;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Signals to the services of a member that it closes, and ends their delays. Thread-safe. */
final class CloseSignal {
    private final CountDownLatch closing = new CountDownLatch(1);

    void close() {
        closing.countDown();
    }

    boolean isClosing() {
        return closing.getCount() == 0;
    }

    /** Waits for the delay; returns {@code true} at once when the member closes. */
    boolean isClosingAfter(long delayMs) throws InterruptedException {
        return closing.await(delayMs, TimeUnit.MILLISECONDS);
    }
}
