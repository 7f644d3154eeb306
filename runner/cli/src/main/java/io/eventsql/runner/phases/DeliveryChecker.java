package io.eventsql.runner.phases;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NotABenchmarkEventException;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.series.RunSeries;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Checks what one consumer of one stream gets: each event once, and those of a key in their order. Thread-safe. */
final class DeliveryChecker implements DeliveryListener {

    /** The events of one of both sorts: of warm-ups, or measured. */
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

    /** @param run the id that the events carry */
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
    public synchronized void delivered(List<Event> events) {
        long nowMicros = clock.epochMicros();
        long nowNanos = clock.nanos();
        for (Event event : events) {
            try {
                check(event, BenchmarkEvent.decode(event.value()), nowMicros, nowNanos);
            } catch (NotABenchmarkEventException e) {
                problems.add(
                        "Consumer " + consumer + " got something that is no event of the benchmark: " + e.getMessage());
            }
        }
    }

    private void check(Event event, BenchmarkEvent decoded, long nowMicros, long nowNanos) {
        if (!decoded.run().equals(run)) {
            problems.add("Consumer " + consumer + " got an event of another run: " + decoded.run());
            return;
        }
        ReceivedEvents seen = decoded.warmup() ? warmup : measured;
        long number = decoded.number();
        if (!seen.numbers.add(number)) {
            duplicates++;
            return;
        }
        String key = event.key();
        if (key != null) {
            Long before = seen.lastOfKey.put(key, number);
            if (before != null && before > number) {
                orderViolations++;
            }
        }
        PhaseLoad phase = decoded.warmup() ? null : stream.phaseOf(number);
        if (phase != null) {
            long latencyMicros = nowMicros - decoded.intendedAtMicros();
            phase.recordDelivered(latencyMicros, nowMicros);
            series.recordDelivered(nowNanos, latencyMicros);
        }
    }

    @Override
    public void failed(Throwable failure) {
        problems.add("Consumer " + consumer + " of " + stream.name() + " failed: " + failure);
    }

    /** How many different events it has seen, those of warm-ups too. */
    synchronized long seenEvents() {
        return warmup.numbers.size() + measured.numbers.size();
    }

    /** Whether it has seen as many events as were acknowledged. */
    synchronized boolean isUpToDate() {
        return seenEvents() >= stream.acknowledgedEvents();
    }

    /** What it has seen and what not, when nothing is on its way any more. */
    synchronized ConsumerCounts counts() {
        return new ConsumerCounts(
                stream.name(), consumer, seenEvents(), lost(true) + lost(false), duplicates, orderViolations);
    }

    /** Events that were acknowledged and not seen; one whose outcome is unknown may be seen or not. */
    private long lost(boolean ofWarmup) {
        NumberSet seen = (ofWarmup ? warmup : measured).numbers;
        NumberSet all = stream.load().acknowledgedNumbers(ofWarmup);
        all.addAll(seen);
        return all.size() - seen.size();
    }
}
