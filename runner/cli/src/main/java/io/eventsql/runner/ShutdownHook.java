package io.eventsql.runner;

import io.eventsql.runner.load.StopSignal;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** On Ctrl-C and SIGTERM, raises the stop signal and delays process exit until the result is written. */
final class ShutdownHook implements AutoCloseable {
    /** Longer than a run takes to stop. */
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

    /** Registers a hook that raises the stop signal. */
    static ShutdownHook register(StopSignal stop) {
        ShutdownHook hook = new ShutdownHook(stop);
        Runtime.getRuntime().addShutdownHook(hook.thread);
        return hook;
    }

    /** Lets the process exit because the result is written. Connections may still be open. */
    void release() {
        done.countDown();
    }

    /** Also releases the process after a run that aborted without a result. */
    @Override
    public void close() {
        done.countDown();
        try {
            Runtime.getRuntime().removeShutdownHook(thread);
        } catch (IllegalStateException e) {
            // The process is already exiting, and this hook runs.
        }
    }

    private void awaitDone() {
        try {
            if (!done.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
                System.err.println("Run did not stop within " + WAIT_SECONDS + " s; no result was written");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
