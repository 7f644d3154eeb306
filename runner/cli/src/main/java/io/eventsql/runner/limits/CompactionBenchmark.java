package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** Publishes to the same few keys of a compacted stream at a steady rate, with a consumer that handles all events. */
final class CompactionBenchmark extends LimitsBenchmark {
    private static final String INTERVALS_TABLE = "interval";
    private static final int INTERVALS = 20;
    private static final int KEYS = 100;
    private static final int CALL_EVENTS = 10;
    private static final int SEGMENT_EVENTS = 100_000;

    CompactionBenchmark(LimitsContext context) {
        super(context, LimitsPart.COMPACTION, "a stream in which the same 100 keys are updated, with a consumer");
    }

    @Override
    void measure() throws SQLException {
        String stream = context.stream("compaction");
        LoadedStream loaded = context.loadedStream()
                .withConsumers(1)
                .withKeys(KEYS)
                .with("segment_events", String.valueOf(SEGMENT_EVENTS))
                .with("compacted", "true");
        long rate = context.number(LimitsNumber.COMPACTION_RATE);
        PhaseSpec phase = PhaseSpec.ofRate("updates", rate, CALL_EVENTS);
        long events = rate * context.number(LimitsNumber.COMPACTION_SECONDS) / INTERVALS;
        List<Double> handledEvents = new ArrayList<>();
        List<Double> bytes = new ArrayList<>();
        try (StreamLoad load = StreamLoad.create(context, stream, loaded)) {
            StreamLog log = new StreamLog(context.dataSource(), stream);
            for (int interval = 1; interval <= INTERVALS; interval++) {
                long before = load.consumedEvents();
                PhaseMeasurement measured = load.send(phase, events).measurement();
                Percentiles latency = Percentiles.ofMicros(measured.latencyMicros());
                long tables = log.tables();
                handledEvents.add((double) (load.consumedEvents() - before));
                bytes.add((double) log.bytes());
                String row = String.valueOf(interval);
                part.add(INTERVALS_TABLE, row, "published_events", Figure.of(measured.publishedEvents()))
                        .add(INTERVALS_TABLE, row, "handled_events", Figure.of(handledEvents.getLast()))
                        .add(INTERVALS_TABLE, row, "bytes", Figure.of(bytes.getLast(), "bytes"))
                        .add(INTERVALS_TABLE, row, "tables", Figure.of(tables))
                        .addLatency(INTERVALS_TABLE, row, "", latency)
                        .requireNoErrors(measured.errors(), "of compaction");
                context.show(
                        "Compaction, %d of %d: %,.0f handled, %,.0f MB in %d tables, p99 %.1f ms",
                        interval, INTERVALS, handledEvents.getLast(), bytes.getLast() / 1e6, tables, latency.p99());
            }
        }
        part.add("quarters", "handled, last / second quarter", "value", Figure.of(lastToSecond(handledEvents)))
                .add("quarters", "size, last / second quarter", "value", Figure.of(lastToSecond(bytes)));
    }

    /** Returns the mean of the last quarter divided by that of the second one. */
    static double lastToSecond(List<Double> intervals) {
        int quarter = intervals.size() / 4;
        return Statistics.ratio(
                mean(intervals.subList(intervals.size() - quarter, intervals.size())),
                mean(intervals.subList(quarter, 2 * quarter)));
    }

    private static double mean(List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).average().orElse(0);
    }
}
