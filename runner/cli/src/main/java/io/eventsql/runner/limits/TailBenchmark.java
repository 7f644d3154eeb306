package io.eventsql.runner.limits;

import io.eventsql.StoredEvent;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.limits.TimeSpans.Span;
import io.eventsql.runner.load.OpenLoop;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Finds what happens while the slowest percent of events is on its way: what the server's processes wait for, pauses
 * of this JVM, and processors that are too busy.
 */
final class TailBenchmark {
    private static final List<Integer> RATES = List.of(1_000, 10_000, 25_000);

    /** The load may be late; what it publishes after this is not recorded. */
    private static final int SPARE_SECONDS = 10;

    private final LimitsContext context;
    private final LimitsSettings.TailLoad settings;

    TailBenchmark(LimitsContext context, LimitsSettings.TailLoad settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    TailResult measure() throws SQLException {
        Map<String, String> server;
        try (Connection connection = context.dataSource().getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT pg_has_role('pg_read_all_stats', 'usage')")) {
            row.next();
            if (!row.getBoolean(1)) {
                throw new IllegalStateException(
                        "The benchmark tail reads what all processes do; GRANT pg_read_all_stats to its role");
            }
            server = CostBenchmark.settings(connection);
        }
        List<TailResult.RateResult> rates = new ArrayList<>();
        for (int rate : RATES) {
            rates.add(measure(rate));
        }
        return new TailResult(server, rates);
    }

    private TailResult.RateResult measure(int rate) {
        String stream = context.stream("tail_" + rate);
        context.eventSql().createStream(context.streamSpec(stream));
        HandledTimes times = new HandledTimes(rate * (settings.warmupSeconds() + settings.seconds() + SPARE_SECONDS));
        try (ConsumedLoad load = new ConsumedLoad(context, stream, 1, 1, times::accept)) {
            load.publish(new OpenLoop(context.publishLoad(stream, 1), rate));
            long sampledFrom = EpochMicros.now();
            // Before the warm-up, because the recorder of the JVM takes time to start.
            try (ActivitySampler sampler = ActivitySampler.start(context.dataSource())) {
                context.sleep(settings.warmupSeconds());
                long start = EpochMicros.now();
                context.sleep(settings.seconds());
                long end = EpochMicros.now();
                load.finish();
                double samplerShare = sampler.finish()
                        / ((EpochMicros.now() - sampledFrom) / 1e6)
                        / Runtime.getRuntime().availableProcessors();
                TailResult.RateResult result =
                        TailResult.attribute(rate, times.between(start, end), sampler.samples(), samplerShare);
                context.progress()
                        .printf(
                                Locale.ROOT,
                                "Tail, %,d/s: p99 %.1f ms%n",
                                rate,
                                result.latencyMs().p99());
                return result;
            }
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
