package io.eventsql.runner.phases;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NotABenchmarkEventException;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.measure.RunSeries;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Checks the deliveries to one consumer of one stream: each event once, and in order per key. Thread-safe. */
final class DeliveryChecker implements DeliveryListener {
    private static final int LATENCIES_MAX = 1_000;

    /** The received events of either the warm-ups or the measured phases. */
    private static final class ReceivedEvents {
        final NumberSet numbers = new NumberSet();
        final Map<String, Long> lastOfKey = new HashMap<>();
    }

    private final String run;
    private final SessionStream stream;
    private final String consumer;
    private final LoadClock clock;
    private final RunSeries series;
    private final Problems problems;
    private final ReceivedEvents warmup = new ReceivedEvents();
    private final ReceivedEvents measured = new ReceivedEvents();
    private long duplicates;
    private long orderViolations;
    private final long[] latencies = new long[LATENCIES_MAX];
    private int latencyCount;
    private @Nullable PhaseLoad latenciesOf;

    /** @param run the run's id in the events */
    DeliveryChecker(
            String run, SessionStream stream, String consumer, LoadClock clock, RunSeries series, Problems problems) {
        this.run = run;
        this.stream = stream;
        this.consumer = consumer;
        this.clock = clock;
        this.series = series;
        this.problems = problems;
    }

    @Override
    public synchronized <T> void delivered(
            Iterable<T> page, Function<? super T, @Nullable String> key, Function<? super T, byte[]> value) {
        long nowMicros = clock.epochMicros();
        long nowNanos = clock.nanos();
        for (T event : page) {
            try {
                check(key.apply(event), BenchmarkEvent.decode(value.apply(event)), nowMicros, nowNanos);
            } catch (NotABenchmarkEventException e) {
                problems.add(
                        "Consumer " + consumer + " received an event that is not a benchmark event: " + e.getMessage());
            }
        }
        recordLatencies(nowMicros, nowNanos);
    }

    private void check(@Nullable String key, BenchmarkEvent decoded, long nowMicros, long nowNanos) {
        if (!decoded.run().equals(run)) {
            problems.add("Consumer " + consumer + " received an event of another run: " + decoded.run());
            return;
        }
        ReceivedEvents seen = decoded.warmup() ? warmup : measured;
        long number = decoded.number();
        if (!seen.numbers.add(number)) {
            duplicates++;
            return;
        }
        if (key != null) {
            Long before = seen.lastOfKey.put(key, number);
            if (before != null && before > number) {
                orderViolations++;
            }
        }
        PhaseLoad phase = decoded.warmup() ? null : stream.phaseOf(number);
        if (phase != null) {
            if (phase != latenciesOf || latencyCount == latencies.length) {
                recordLatencies(nowMicros, nowNanos);
                latenciesOf = phase;
            }
            latencies[latencyCount++] = nowMicros - decoded.intendedAtMicros();
        }
    }

    /** Records the latencies gathered so far. At some 100,000 events per second, one by one would take a processor. */
    private void recordLatencies(long nowMicros, long nowNanos) {
        PhaseLoad phase = latenciesOf;
        if (phase != null && latencyCount > 0) {
            phase.recordDelivered(latencies, latencyCount, nowMicros);
            series.recordDelivered(nowNanos, latencies, latencyCount);
        }
        latencyCount = 0;
    }

    @Override
    public void failed(Throwable failure) {
        problems.add("Consumer " + consumer + " of " + stream.name() + " failed: " + failure);
    }

    /** Returns the distinct events received, including warm-ups. */
    synchronized long seenEvents() {
        return warmup.numbers.size() + measured.numbers.size();
    }

    /** Returns whether it has received as many events as were acknowledged. */
    synchronized boolean isUpToDate() {
        return seenEvents() >= stream.acknowledgedEvents();
    }

    /** Returns the counts. Call it when no events are in transit. */
    synchronized ConsumerCounts counts() {
        return new ConsumerCounts(
                stream.name(), consumer, seenEvents(), lost(true) + lost(false), duplicates, orderViolations);
    }

    /** Returns the events acknowledged and not received. An event with unknown outcome may or may not be received. */
    private long lost(boolean ofWarmup) {
        NumberSet seen = (ofWarmup ? warmup : measured).numbers;
        NumberSet all = stream.acknowledgedNumbers(ofWarmup);
        all.addAll(seen);
        return all.size() - seen.size();
    }
}
