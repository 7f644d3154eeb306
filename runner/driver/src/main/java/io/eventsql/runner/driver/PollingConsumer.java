package io.eventsql.runner.driver;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** A consumer with its own thread, which polls until it is closed or a poll fails. */
public final class PollingConsumer implements AutoCloseable {
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;

    /** One poll, with the delivery of what it found. */
    @FunctionalInterface
    public interface Poll {
        /** Returns the pause until the next poll in milliseconds. */
        long poll() throws Exception;
    }

    private PollingConsumer(String name, Poll poll, Consumer<Throwable> failed) {
        this.thread = Thread.ofPlatform().name(name).unstarted(() -> run(poll, failed));
    }

    /**
     * Starts polling.
     *
     * @param name the name of the thread
     * @param failed receives the failure that ended the consumer
     */
    public static PollingConsumer start(String name, Poll poll, Consumer<Throwable> failed) {
        PollingConsumer consumer = new PollingConsumer(name, poll, failed);
        consumer.thread.start();
        return consumer;
    }

    private void run(Poll poll, Consumer<Throwable> failed) {
        try {
            long pauseMs = 0;
            while (!closing.await(pauseMs, TimeUnit.MILLISECONDS)) {
                pauseMs = poll.poll();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Exception e) {
            failed.accept(e);
        }
    }

    /** Waits for the end of a poll in progress. */
    @Override
    public void close() {
        closing.countDown();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
