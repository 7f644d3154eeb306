package io.eventsql.runner.phases;

import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The way of a new consumer through a stream, from its first event, until it has received a number of events. Thread-safe. */
public final class ReadPass implements DeliveryListener, AutoCloseable {
    private static final long POLL_MS = 50;

    private final String name;
    private final long until;
    private final Problems problems;
    private final CountDownLatch ended = new CountDownLatch(1);
    private @Nullable AutoCloseable consumer;
    private long events;
    private long calls;
    private long firstNanos;
    private long lastNanos;

    private ReadPass(String name, long until, Problems problems) {
        this.name = name;
        this.until = until;
        this.problems = problems;
    }

    /**
     * Starts the consumer.
     *
     * @param consumer the name of a new consumer
     * @param until the number of events after which the pass is complete
     * @param problems receives failures
     * @throws Exception if the driver fails
     */
    public static ReadPass start(Driver driver, String stream, String consumer, long until, Problems problems)
            throws Exception {
        ReadPass pass = new ReadPass("consumer " + consumer + " of " + stream, until, problems);
        pass.consumer = driver.consume(stream, consumer, pass);
        return pass;
    }

    @Override
    public synchronized <T> void delivered(
            Iterable<T> page, Function<? super T, @Nullable String> key, Function<? super T, byte[]> value) {
        lastNanos = System.nanoTime();
        if (calls == 0) {
            firstNanos = lastNanos;
        }
        calls++;
        for (T unused : page) {
            events++;
        }
        if (events >= until) {
            ended.countDown();
        }
    }

    @Override
    public void failed(Throwable failure) {
        problems.add("The " + name + " failed: " + failure);
        ended.countDown();
    }

    /**
     * Waits for the end of the pass.
     *
     * @param stopped aborts the wait
     * @return whether it ended before it was stopped; {@link #events()} shows whether it is complete
     */
    public boolean await(BooleanSupplier stopped) throws InterruptedException {
        while (!ended.await(POLL_MS, TimeUnit.MILLISECONDS)) {
            if (stopped.getAsBoolean()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the events received so far. */
    public synchronized long events() {
        return events;
    }

    /** Returns the pages received so far. */
    public synchronized long calls() {
        return calls;
    }

    /** Returns the time from the first page to the last one. */
    public synchronized long nanos() {
        return lastNanos - firstNanos;
    }

    /** Stops the consumer and waits for a callback in progress. */
    @Override
    public void close() {
        AutoCloseable started = consumer;
        if (started == null) {
            return;
        }
        try {
            started.close();
        } catch (Exception e) {
            problems.add("Closing the " + name + " failed: " + e);
        }
    }
}
