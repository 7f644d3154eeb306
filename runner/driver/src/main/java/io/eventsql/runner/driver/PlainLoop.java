package io.eventsql.runner.driver;

import io.eventsql.Event;
import io.eventsql.runner.driver.PlainProgram.Load;
import io.eventsql.runner.driver.PlainProgram.Rates;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The loop of a plain program: threads that publish for a time, then the wait for what they have published. */
public final class PlainLoop {
    private static final long ARRIVE_NANOS = TimeUnit.SECONDS.toNanos(120);

    private PlainLoop() {}

    /** Publishes one call. Returns when it is stored or, for an asynchronous load, when the client has accepted it. */
    @FunctionalInterface
    public interface Caller {
        void call() throws Exception;
    }

    /** Waits until everything is stored. */
    @FunctionalInterface
    public interface Flush {
        void await() throws Exception;
    }

    /**
     * Runs the load.
     *
     * @param callers publish concurrently, each on a virtual thread of its own, as the runner's do
     * @param flush waits for the answers to asynchronous calls
     * @param arrived returns the events that the consumer has counted
     * @throws IllegalStateException if not everything arrives within two minutes
     */
    public static Rates run(Load load, List<Caller> callers, Flush flush, LongSupplier arrived) throws Exception {
        long start = System.nanoTime();
        long end = start + (long) (load.seconds() * 1e9);
        long events = 0;
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Long>> running = new ArrayList<>();
            callers.forEach(caller -> running.add(threads.submit(() -> callUntil(end, caller))));
            for (Future<Long> calls : running) {
                events += calls.get() * load.eventsPerCall();
            }
        }
        flush.await();
        double publishSeconds = (System.nanoTime() - start) / 1e9;
        while (arrived.getAsLong() < events) {
            if (System.nanoTime() - end > ARRIVE_NANOS) {
                throw new IllegalStateException("only " + arrived.getAsLong() + " of " + events + " events arrived");
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }
        double consumeSeconds = (System.nanoTime() - start) / 1e9;
        return new Rates(events / publishSeconds, events / consumeSeconds);
    }

    /** Returns the events of a call, with the next values. */
    public static List<Event> events(Supplier<byte[]> values, int count) {
        List<Event> events = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            events.add(Event.of(values.get()));
        }
        return events;
    }

    private static long callUntil(long endNanos, Caller caller) throws Exception {
        long calls = 0;
        while (System.nanoTime() < endNanos) {
            caller.call();
            calls++;
        }
        return calls;
    }
}
