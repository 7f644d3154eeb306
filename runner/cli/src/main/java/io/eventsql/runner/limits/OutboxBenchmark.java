package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadListener;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Measures whether a long-running transaction makes the outbox grow or direct publishes slow. Transactions that publish
 * one event each and direct publishes run at the same steady rate, with and without a long-running snapshot.
 */
final class OutboxBenchmark {
    private final LimitsContext context;
    private final LimitsSettings.OutboxLoad settings;

    OutboxBenchmark(LimitsContext context, LimitsSettings.OutboxLoad settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    OutboxResult measure() throws SQLException {
        return OutboxResult.of(run(false), run(true));
    }

    private OutboxResult.Run run(boolean withSnapshot) throws SQLException {
        String kind = withSnapshot ? "with" : "without";
        context.progress()
                .println("Outbox: " + kind + " a long-running snapshot, " + settings.eventsPerSecond()
                        + " transactions/s and as many direct publishes/s for " + settings.seconds() + " s");
        String plain = context.stream("outbox_plain_" + kind);
        String transactional = context.stream("outbox_" + kind);
        context.eventSql().createStream(StreamSpec.of(plain));
        context.eventSql().createStream(StreamSpec.of(transactional));
        try (OutboxTarget target =
                new OutboxTarget(context.dataSource(), context.eventSql().outbox(), transactional)) {
            Loads loads = new Loads(
                    new OpenLoop(context.publishLoad(plain, 1), settings.eventsPerSecond()),
                    new OpenLoop(context.load(target, 1, List.of()), settings.eventsPerSecond()));
            PublishMeter warmup = new PublishMeter();
            loads.run(phase(true, settings.warmupSeconds()), new PublishMeter(), warmup);
            context.checkStopped();
            if (!withSnapshot) {
                return measure(loads, transactional, warmup, null);
            }
            try (HeldSnapshot snapshot = HeldSnapshot.take(context.dataSource())) {
                return measure(loads, transactional, warmup, snapshot);
            }
        }
    }

    private OutboxResult.Run measure(
            Loads loads, String transactional, PublishMeter warmup, @Nullable HeldSnapshot snapshot)
            throws SQLException {
        Duration time = Duration.ofSeconds(settings.seconds());
        LoadPhase phase = phase(false, settings.seconds());
        TenthsMeter plainMeter = new TenthsMeter(phase.startNanos(), time.toNanos());
        PublishMeter transactionMeter = new PublishMeter();
        List<OutboxSampler.Tenth> outbox = new OutboxSampler(
                        context.dataSource(), context.eventSql().outbox(), time)
                .sampleDuring(() -> loads.run(phase, plainMeter, transactionMeter));
        context.checkStopped();
        @Nullable Long age = snapshot == null ? null : snapshot.ageTransactions();
        List<PhaseMeasurement> plain = plainMeter.measurements(phase.anchor());
        PhaseMeasurement transactions = transactionMeter.measurement(transactionMeter.answeredEvents(), phase.anchor());
        long committed = warmup.publishedEvents() + transactions.publishedEvents();
        List<ErrorCount> errors = Stream.concat(plain.stream(), Stream.of(transactions))
                .flatMap(measurement -> measurement.errors().stream())
                .toList();
        return new OutboxResult.Run(
                plain.stream().mapToLong(PhaseMeasurement::publishedEvents).sum(),
                OutboxResult.mergedLatencies(plain),
                committed,
                Percentiles.ofMicros(transactions.latencyMicros()),
                new StoredEventCounter(context, transactional).await(committed),
                errors,
                IntStream.range(0, TenthsMeter.TENTHS)
                        .mapToObj(tenth -> OutboxResult.Tenth.of(plain.get(tenth), outbox.get(tenth)))
                        .toList(),
                age);
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

    private LoadPhase phase(boolean warmup, int seconds) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        return LoadPhase.ofEvents(warmup, anchor, anchor.nanos(), settings.eventsPerSecond() * seconds);
    }
}
