package io.eventsql.runner.limits;

import io.eventsql.Event;
import io.eventsql.Outbox;
import io.eventsql.StreamSpec;
import io.eventsql.runner.database.HeldSnapshot;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.LoadListener;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.load.OutboxTransaction;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Measures whether a long-running transaction makes the outbox grow or direct publishes slow. Transactions that publish
 * one event each and direct publishes run at the same steady rate, with and without a long-running snapshot.
 */
final class OutboxBenchmark {
    /** Low, because the pool is shared with the library. */
    private static final int TRANSACTIONS_AT_A_TIME = 3;

    private final LimitsContext context;
    private final int rate;
    private final int seconds;
    private final PartRecorder part;

    OutboxBenchmark(LimitsContext context) {
        this.context = context;
        this.rate = context.number(LimitsNumber.OUTBOX_RATE);
        this.seconds = context.number(LimitsNumber.OUTBOX_SECONDS);
        this.part = context.recorder(
                LimitsPart.OUTBOX,
                rate + " transactions/s with one event each and as many direct publishes; " + seconds
                        + " s without and " + seconds
                        + " s with a long-running snapshot; sizes and backlogs are maxima");
    }

    /** The figures that are compared. */
    private record Run(double p99Ms, List<OutboxSampler.Tenth> outbox) {}

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        Run without = run("without");
        Run with = run("with");
        return part.add(
                        "ratios",
                        "direct p99, with / without",
                        "value",
                        Figure.of(Statistics.ratio(with.p99Ms, without.p99Ms)))
                .add(
                        "ratios",
                        // In the second tenth it has reached its working size.
                        "outbox size with a snapshot, last tenth / second tenth",
                        "value",
                        Figure.of(
                                Statistics.ratio((double) with.outbox.getLast().bytesMax(), (double)
                                        with.outbox.get(1).bytesMax())))
                .part();
    }

    private Run run(String kind) throws SQLException {
        context.show(
                "Outbox: %s a long-running snapshot, %d transactions/s and as many direct publishes/s for %d s",
                kind, rate, seconds);
        String plain = context.stream("outbox_plain_" + kind);
        String transactional = context.stream("outbox_" + kind);
        context.eventSql().createStream(StreamSpec.of(plain));
        context.eventSql().createStream(StreamSpec.of(transactional));
        try (ExecutorService threads = Executors.newFixedThreadPool(TRANSACTIONS_AT_A_TIME)) {
            Loads loads = new Loads(
                    new OpenLoop(context.publishLoad(plain, 1), rate),
                    new OpenLoop(context.load(target(transactional, threads), 1, List.of()), rate));
            PublishMeter warmup = new PublishMeter();
            loads.run(
                    context.phaseOfEvents(true, (long) rate * context.number(LimitsNumber.WARMUP_SECONDS)),
                    new PublishMeter(),
                    warmup);
            context.checkStopped();
            if (kind.equals("without")) {
                return measure(kind, loads, transactional, warmup);
            }
            try (HeldSnapshot snapshot = HeldSnapshot.take(context.dataSource())) {
                Run measured = measure(kind, loads, transactional, warmup);
                part.add("runs", "snapshot_age_transactions", kind, Figure.of(snapshot.ageTransactions()));
                return measured;
            }
        }
    }

    /** Publishes each call through the outbox in its own database transaction. */
    private PublishTarget target(String stream, ExecutorService threads) {
        Outbox outbox = context.eventSql().outbox();
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                OutboxTransaction.publish(context.dataSource(), outbox, stream, events);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return CompletableFuture.runAsync(() -> publish(events), threads);
            }
        };
    }

    private Run measure(String kind, Loads loads, String transactional, PublishMeter warmup) throws SQLException {
        LoadPhase phase = context.phaseOfEvents(false, (long) rate * seconds);
        Duration time = Duration.ofSeconds(seconds);
        TenthsMeter plainMeter = new TenthsMeter(phase.startNanos(), time.toNanos());
        PublishMeter transactionMeter = new PublishMeter();
        List<OutboxSampler.Tenth> outbox =
                new OutboxSampler(context, time).sampleDuring(() -> loads.run(phase, plainMeter, transactionMeter));
        context.checkStopped();
        List<PhaseMeasurement> plain = plainMeter.measurements(phase.anchor());
        PhaseMeasurement transactions = transactionMeter.measurement(transactionMeter.answeredEvents(), phase.anchor());
        long committed = warmup.publishedEvents() + transactions.publishedEvents();
        long stored = new StreamLog(context.dataSource(), transactional).awaitHeads(context, committed);
        Percentiles direct = Percentiles.ofMicros(Histograms.merge(
                plain.stream().map(PhaseMeasurement::latencyMicros).toList()));
        Percentiles inTransaction = Percentiles.ofMicros(transactions.latencyMicros());
        for (int tenth = 0; tenth < TenthsMeter.TENTHS; tenth++) {
            Percentiles latency = Percentiles.ofMicros(plain.get(tenth).latencyMicros());
            String row = "tenth " + (tenth + 1);
            part.add("tenths", row, kind + "_p99_ms", Figure.of(latency.p99(), "ms"))
                    .add(
                            "tenths",
                            row,
                            kind + "_bytes",
                            Figure.of(outbox.get(tenth).bytesMax(), "bytes"))
                    .add(
                            "tenths",
                            row,
                            kind + "_events",
                            Figure.of(outbox.get(tenth).eventsMax()))
                    .requireNoErrors(plain.get(tenth).errors(), "published directly " + kind + " a snapshot");
        }
        part.add("runs", "direct_events", kind, Figure.of(direct(plain)))
                .add("runs", "direct_p50_ms", kind, Figure.of(direct.p50(), "ms"))
                .add("runs", "direct_p99_ms", kind, Figure.of(direct.p99(), "ms"))
                .add("runs", "transactions_p50_ms", kind, Figure.of(inTransaction.p50(), "ms"))
                .add("runs", "transactions_p99_ms", kind, Figure.of(inTransaction.p99(), "ms"))
                .add("runs", "committed_events", kind, Figure.of(committed))
                .add("runs", "stored_events", kind, Figure.of(stored))
                .requireNoErrors(transactions.errors(), "published in transactions " + kind + " a snapshot")
                .requireNone(committed - stored, "committed events are missing in the stream " + kind + " a snapshot");
        return new Run(direct.p99(), outbox);
    }

    private static long direct(List<PhaseMeasurement> tenths) {
        return tenths.stream().mapToLong(PhaseMeasurement::publishedEvents).sum();
    }

    /** Direct publishes and transactions that run concurrently. */
    private record Loads(OpenLoop plain, OpenLoop transactions) {
        void run(LoadPhase phase, LoadListener ofPlain, LoadListener ofTransactions) {
            CompletableFuture<?> running =
                    CompletableFuture.runAsync(() -> transactions.run(phase, ofTransactions), Loads::start);
            plain.run(phase, ofPlain);
            running.join();
        }

        private static void start(Runnable task) {
            Thread.ofPlatform().name("limits-transactions").daemon().start(task);
        }
    }
}
