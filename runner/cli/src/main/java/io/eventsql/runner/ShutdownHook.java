package io.eventsql.runner;

import io.eventsql.runner.load.StopSignal;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** On Ctrl-C and SIGTERM, raises the stop signal and holds the end of the process back until the result is written. */
final class ShutdownHook implements AutoCloseable {
    /** Longer than a run needs to end once it is told to. */
    private static final long WAIT_SECONDS = 20;

    private final CountDownLatch done = new CountDownLatch(1);
    private final Thread thread;

    private ShutdownHook(StopSignal stop) {
        this.thread = new Thread(
                () -> {
                    stop.raise(StopSignal.Reason.INTERRUPTED);
                    awaitDone();
                },
                "stop-run");
    }

    /** Registers one. */
    static ShutdownHook register(StopSignal stop) {
        ShutdownHook hook = new ShutdownHook(stop);
        Runtime.getRuntime().addShutdownHook(hook.thread);
        return hook;
    }

    /** The result is written: the process may end, although connections may still be open. */
    void release() {
        done.countDown();
    }

    /** Also lets go of a process whose run broke off without a result. */
    @Override
    public void close() {
        done.countDown();
        try {
            Runtime.getRuntime().removeShutdownHook(thread);
        } catch (IllegalStateException e) {
            // The process is ending already: the hook is what ends it.
        }
    }

    private void awaitDone() {
        try {
            if (!done.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
                System.err.println("The run did not end within " + WAIT_SECONDS + " s; there is no result");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
