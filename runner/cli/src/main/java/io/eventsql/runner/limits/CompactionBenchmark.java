package io.eventsql.runner.limits;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Subscription;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.workload.KeyShare;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;

/** Publishes to the same few keys of a compacted stream at a steady rate, with a consumer that handles all events. */
final class CompactionBenchmark {
    private static final int KEYS = 100;
    private static final int CALL_EVENTS = 10;
    private static final int SEGMENT_EVENTS = 100_000;

    private final LimitsContext context;
    private final LimitsSettings.CompactionLoad settings;

    CompactionBenchmark(LimitsContext context, LimitsSettings.CompactionLoad settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    CompactionResult measure() throws SQLException {
        String stream = context.stream("compaction");
        context.eventSql()
                .createStream(context.streamSpec(stream)
                        .withSegmentSize(SEGMENT_EVENTS)
                        .withCompaction(Compaction.DEFAULT));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        OpenLoop load = new OpenLoop(
                context.publishLoad(stream, CALL_EVENTS, KeyShare.keysOf(0, KEYS)), settings.eventsPerSecond());
        AtomicLong handled = new AtomicLong();
        List<CompactionResult.Interval> intervals = new ArrayList<>();
        ConsumerSpec consumer = ConsumerSpec.of(stream, "limits");
        Subscription subscription =
                context.eventSql().subscribeBatch(consumer, events -> handled.addAndGet(events.size()));
        try {
            for (int interval = 1; interval <= CompactionResult.INTERVALS; interval++) {
                long before = handled.get();
                PhaseMeasurement measured = publish(load);
                intervals.add(new CompactionResult.Interval(
                        measured.publishedEvents(),
                        measured.failedEvents(),
                        handled.get() - before,
                        log.bytes(),
                        log.tables(),
                        Percentiles.ofMicros(measured.latencyMicros())));
                context.progress()
                        .printf(
                                Locale.ROOT,
                                "Compaction, %d of %d: %,d handled, %,d MB in %d tables, p99 %.1f ms%n",
                                interval,
                                CompactionResult.INTERVALS,
                                intervals.getLast().handledEvents(),
                                intervals.getLast().bytes() >> 20,
                                intervals.getLast().tables(),
                                intervals.getLast().latencyMs().p99());
            }
        } finally {
            subscription.close();
        }
        return CompactionResult.of(intervals);
    }

    private PhaseMeasurement publish(OpenLoop load) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        long events = settings.eventsPerSecond() * settings.seconds() / CompactionResult.INTERVALS;
        PublishMeter meter = new PublishMeter();
        long sent = load.run(LoadPhase.ofEvents(false, anchor, anchor.nanos(), events), meter);
        context.checkStopped();
        return meter.measurement(sent, anchor);
    }
}
