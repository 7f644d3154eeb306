package io.eventsql.runner.limits;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Subscription;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.workload.KeyShare;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Publishes to the same few keys of a compacted stream at a steady rate, with a consumer that handles all events. */
final class CompactionBenchmark {
    private static final String INTERVALS_TABLE = "interval";
    private static final int INTERVALS = 20;
    private static final int KEYS = 100;
    private static final int CALL_EVENTS = 10;
    private static final int SEGMENT_EVENTS = 100_000;

    private final LimitsContext context;

    CompactionBenchmark(LimitsContext context) {
        this.context = context;
    }

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        String stream = context.stream("compaction");
        context.eventSql()
                .createStream(context.streamSpec(stream)
                        .withSegmentSize(SEGMENT_EVENTS)
                        .withCompaction(Compaction.DEFAULT));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        long rate = context.number(LimitsNumber.COMPACTION_RATE);
        long events = rate * context.number(LimitsNumber.COMPACTION_SECONDS) / INTERVALS;
        OpenLoop load = new OpenLoop(context.publishLoad(stream, CALL_EVENTS, KeyShare.keysOf(0, KEYS)), rate);
        AtomicLong handled = new AtomicLong();
        List<Double> handledEvents = new ArrayList<>();
        List<Double> bytes = new ArrayList<>();
        PartRecorder part = context.recorder(
                LimitsPart.COMPACTION, "a stream in which the same 100 keys are updated, with a consumer");
        Subscription subscription = context.eventSql()
                .subscribeBatch(ConsumerSpec.of(stream, "limits"), page -> handled.addAndGet(page.size()));
        try {
            for (int interval = 1; interval <= INTERVALS; interval++) {
                long before = handled.get();
                PhaseMeasurement measured = context.publish(load, context.phaseOfEvents(false, events));
                Percentiles latency = Percentiles.ofMicros(measured.latencyMicros());
                long tables = log.tables();
                handledEvents.add((double) (handled.get() - before));
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
        } finally {
            subscription.close();
        }
        return part.add("quarters", "handled, last / second quarter", "value", Figure.of(lastToSecond(handledEvents)))
                .add("quarters", "size, last / second quarter", "value", Figure.of(lastToSecond(bytes)))
                .part();
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
