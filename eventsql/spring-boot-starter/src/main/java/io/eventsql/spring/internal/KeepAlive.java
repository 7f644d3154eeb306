package io.eventsql.spring.internal;

import java.util.concurrent.CountDownLatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** All threads of the library are daemons: without this, an application that only consumes would exit at once. */
public final class KeepAlive {
    private static final Logger LOG = LoggerFactory.getLogger(KeepAlive.class);

    private KeepAlive() {}

    /**
     * Keeps the process alive until the latch is zero.
     *
     * @param threadName the thread that waits
     */
    public static void until(CountDownLatch stopped, String threadName) {
        Thread thread = new Thread(
                () -> {
                    try {
                        stopped.await();
                    } catch (InterruptedException e) {
                        LOG.debug("Interrupted; no longer keeping the process alive", e);
                    }
                },
                threadName);
        thread.setDaemon(false);
        thread.start();
    }
}
