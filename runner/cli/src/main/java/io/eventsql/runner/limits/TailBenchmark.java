package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.limits.TimeSpans.Span;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Finds what happens while the slowest percent of events is on its way: what the server's processes wait for, pauses
 * of this JVM, and processors that are too busy.
 */
final class TailBenchmark extends LimitsBenchmark {
    private static final List<Integer> RATES = List.of(1_000, 10_000, 25_000);

    /** The load may be late; what it publishes after this is not recorded. */
    private static final int SPARE_SECONDS = 10;

    private static final double PERCENT = 100;
    private static final Duration POLL = Duration.ofMillis(5);
    private static final Duration NO_PROGRESS = Duration.ofSeconds(60);

    TailBenchmark(LimitsContext context) {
        super(
                context,
                LimitsPart.TAIL,
                "what was seen while the slowest percent of events was on its way from publish to handler");
    }

    @Override
    void measure() throws SQLException {
        if (context.query("SELECT pg_has_role('pg_read_all_stats', 'usage')::int") == 0) {
            throw new IllegalStateException(
                    "The part tail reads what all processes do; GRANT pg_read_all_stats to its role");
        }
        for (int rate : RATES) {
            measure(rate);
        }
        try (Connection connection = context.dataSource().getConnection()) {
            part.addSettings(CostBenchmark.settings(connection));
        }
    }

    private void measure(int rate) throws SQLException {
        int seconds = context.number(LimitsNumber.WARMUP_SECONDS) + context.number(LimitsNumber.TAIL_SECONDS);
        HandledTimes times = new HandledTimes(rate * (seconds + SPARE_SECONDS));
        try (StreamLoad load = StreamLoad.create(context, context.stream("tail_" + rate), context.loadedStream())) {
            Subscription subscription =
                    context.eventSql().subscribe(ConsumerSpec.of(load.stream(), "limits"), times::accept);
            try {
                measure(load, times, rate);
            } finally {
                subscription.close();
            }
        }
    }

    private void measure(StreamLoad load, HandledTimes times, int rate) throws SQLException {
        PhaseSpec phase = PhaseSpec.ofRate("tail", rate, 1);
        long sampledFrom = EpochMicros.now();
        // Before the warm-up, because the recorder of the JVM takes time to start.
        try (ActivitySampler sampler = ActivitySampler.start(context.dataSource())) {
            load.send(phase, Duration.ofSeconds(context.number(LimitsNumber.WARMUP_SECONDS)));
            long start = EpochMicros.now();
            load.send(phase, Duration.ofSeconds(context.number(LimitsNumber.TAIL_SECONDS)));
            long end = EpochMicros.now();
            load.requireConsumed();
            times.require(context, load.publishedEvents());
            double samplerShare = sampler.finish()
                    / ((EpochMicros.now() - sampledFrom) / 1e6)
                    / Runtime.getRuntime().availableProcessors();
            String name = String.format(Locale.ROOT, "%,d/s", rate);
            Percentiles latency = TailAnalysis.addTo(part, name, times.between(start, end), sampler.samples());
            part.add("rates", name, "sampler", Figure.of(PERCENT * samplerShare, "%"));
            context.show("Tail, %s: p99 %.1f ms", name, latency.p99());
        }
    }

    /** The times of the first events up to a number. Thread-safe. */
    private static final class HandledTimes {
        private final long[] intendedMicros;
        private final long[] handledMicros;
        private final AtomicInteger count = new AtomicInteger();

        HandledTimes(int eventsMax) {
            intendedMicros = new long[eventsMax];
            handledMicros = new long[eventsMax];
        }

        void accept(StoredEvent event) {
            int index = count.getAndIncrement();
            if (index < intendedMicros.length) {
                intendedMicros[index] = BenchmarkEvent.decode(event.value()).intendedAtMicros();
                handledMicros[index] = EpochMicros.now();
            }
        }

        /** Waits until a number of events is handled. */
        void require(LimitsContext context, long events) throws SQLException {
            long handled = context.await(count::get, events, NO_PROGRESS, POLL);
            if (handled != events) {
                throw new IllegalStateException(events + " events were published, but " + handled + " handled");
            }
        }

        /** Returns the times of the events that were to be published in a period. */
        List<Span> between(long fromMicros, long toMicros) {
            List<Span> spans = new ArrayList<>();
            for (int i = 0; i < Math.min(count.get(), intendedMicros.length); i++) {
                if (intendedMicros[i] >= fromMicros && intendedMicros[i] < toMicros) {
                    spans.add(new Span(intendedMicros[i], Math.max(intendedMicros[i], handledMicros[i])));
                }
            }
            return spans;
        }
    }
}
