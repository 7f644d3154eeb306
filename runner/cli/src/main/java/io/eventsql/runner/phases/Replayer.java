package io.eventsql.runner.phases;

import io.eventsql.runner.driver.Driver;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Repeatedly reads a stream from its start as fast as possible. Each pass uses a new consumer, and ends when it has
 * received as many events as were acknowledged when it started. Thread-safe.
 */
final class Replayer implements AutoCloseable {
    private static final long WAIT_FOR_EVENTS_MS = 50;

    private final Driver driver;
    private final SessionStream stream;
    private final String name;
    private final Problems problems;
    private final Thread thread;
    private final AtomicLong events = new AtomicLong();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final AtomicLong passes = new AtomicLong();

    private Replayer(Driver driver, SessionStream stream, String name, Problems problems) {
        this.driver = driver;
        this.stream = stream;
        this.name = name;
        this.problems = problems;
        this.thread = Thread.ofVirtual().name("replayer-" + name).unstarted(this::replay);
    }

    static Replayer start(Driver driver, SessionStream stream, String name, Problems problems) {
        Replayer replayer = new Replayer(driver, stream, name, problems);
        replayer.thread.start();
        return replayer;
    }

    private void replay() {
        try {
            while (!closed.await(stream.acknowledgedEvents() == 0 ? WAIT_FOR_EVENTS_MS : 0, TimeUnit.MILLISECONDS)) {
                long until = stream.acknowledgedEvents();
                if (until > 0 && pass(until)) {
                    passes.incrementAndGet();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Exception e) {
            problems.add("Replayer " + name + " of " + stream.name() + " failed: " + e);
        }
    }

    /** Returns whether the pass completed before the replayer was closed. */
    private boolean pass(long until) throws Exception {
        String consumer = name + "_" + passes;
        try (ReadPass pass = ReadPass.start(driver, stream.name(), consumer, until, problems)) {
            boolean completed = pass.await(() -> closed.getCount() == 0);
            events.addAndGet(pass.events());
            return completed;
        }
    }

    ReplayerCounts counts() {
        return new ReplayerCounts(stream.name(), name, passes.get(), events.get());
    }

    /** Stops the current pass. */
    @Override
    public void close() {
        closed.countDown();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
