package io.eventsql.runner.limits;

import io.eventsql.OutboxBacklog;
import io.eventsql.runner.database.HeldSnapshot;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/**
 * Measures whether a long-running transaction makes the outbox grow or direct publishes slow. Transactions that publish
 * one event each and direct publishes run at the same steady rate, with and without a long-running snapshot.
 */
final class OutboxBenchmark extends LimitsBenchmark {
    private static final int TENTHS = 10;
    private static final int SAMPLES_PER_TENTH = 10;

    private final int rate;
    private final int seconds;

    OutboxBenchmark(LimitsContext context) {
        this(context, context.number(LimitsNumber.OUTBOX_RATE), context.number(LimitsNumber.OUTBOX_SECONDS));
    }

    private OutboxBenchmark(LimitsContext context, int rate, int seconds) {
        super(
                context,
                LimitsPart.OUTBOX,
                rate + " transactions/s with one event each and as many direct publishes; " + seconds
                        + " s without and " + seconds
                        + " s with a long-running snapshot; sizes and backlogs are maxima");
        this.rate = rate;
        this.seconds = seconds;
    }

    /**
     * The maximum values of several samples of the outbox.
     *
     * @param bytes the size of the outbox tables, including indexes
     * @param events the committed events not yet relayed
     */
    private record Maximum(long bytes, long events) {
        Maximum with(Maximum other) {
            return new Maximum(Math.max(bytes, other.bytes), Math.max(events, other.events));
        }
    }

    /** A tenth of a run: both loads, and the outbox next to them. */
    private record Tenth(PhaseMeasurement direct, PhaseMeasurement transactions, Maximum outbox) {}

    @Override
    void measure() throws SQLException {
        List<Tenth> without = run("without");
        List<Tenth> with = run("with");
        part.add(
                        "ratios",
                        "direct p99, with / without",
                        "value",
                        Figure.of(Statistics.ratio(
                                latency(with, Tenth::direct).p99(),
                                latency(without, Tenth::direct).p99())))
                .add(
                        "ratios",
                        // In the second tenth it has reached its working size.
                        "outbox size with a snapshot, last tenth / second tenth",
                        "value",
                        Figure.of(
                                Statistics.ratio((double) with.getLast().outbox.bytes(), (double)
                                        with.get(1).outbox.bytes())));
    }

    private List<Tenth> run(String kind) throws SQLException {
        context.show(
                "Outbox: %s a long-running snapshot, %d transactions/s and as many direct publishes/s for %d s",
                kind, rate, seconds);
        PhaseSpec phase = PhaseSpec.ofRate(kind, rate, 1);
        Duration warmup = Duration.ofSeconds(context.number(LimitsNumber.WARMUP_SECONDS));
        try (StreamLoad direct =
                        StreamLoad.create(context, context.stream("outbox_plain_" + kind), LoadedStream.ofLibrary());
                StreamLoad transactions = StreamLoad.create(
                        context, context.stream("outbox_" + kind), LoadedStream.of("eventsql-outbox"))) {
            atOnce(() -> direct.warmUp(phase, warmup), () -> transactions.warmUp(phase, warmup));
            List<Tenth> tenths;
            if (kind.equals("with")) {
                try (HeldSnapshot snapshot = HeldSnapshot.take(context.dataSource())) {
                    tenths = measure(direct, transactions, phase);
                    part.add("runs", "snapshot_age_transactions", kind, Figure.of(snapshot.ageTransactions()));
                }
            } else {
                tenths = measure(direct, transactions, phase);
            }
            add(kind, tenths, transactions);
            return tenths;
        }
    }

    private List<Tenth> measure(StreamLoad direct, StreamLoad transactions, PhaseSpec phase) {
        long events = (long) rate * seconds / TENTHS;
        List<Tenth> tenths = new ArrayList<>();
        while (tenths.size() < TENTHS) {
            List<PhaseMeasurement> measured = new ArrayList<>();
            Maximum outbox = sampleDuring(() -> {
                CompletableFuture<PhaseMeasurement> inTransactions = CompletableFuture.supplyAsync(
                        () -> transactions.send(phase, events).measurement(), OutboxBenchmark::start);
                measured.add(direct.send(phase, events).measurement());
                measured.add(inTransactions.join());
            });
            tenths.add(new Tenth(measured.getFirst(), measured.getLast(), outbox));
        }
        return tenths;
    }

    /**
     * Samples the size and the backlog of the outbox while a load runs.
     *
     * @throws IllegalStateException if a sample failed
     */
    private Maximum sampleDuring(Runnable load) {
        AtomicReference<Maximum> maximum = new AtomicReference<>(new Maximum(0, 0));
        long pauseMs = Duration.ofSeconds(seconds).toMillis() / TENTHS / SAMPLES_PER_TENTH;
        try (ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor()) {
            ScheduledFuture<?> sampling = timer.scheduleWithFixedDelay(
                    () -> maximum.accumulateAndGet(sample(), Maximum::with), 0, pauseMs, TimeUnit.MILLISECONDS);
            try {
                load.run();
            } finally {
                sampling.cancel(false);
            }
            if (sampling.state() == ScheduledFuture.State.FAILED) {
                throw new IllegalStateException("Sampling the outbox failed", sampling.exceptionNow());
            }
        }
        return maximum.get();
    }

    private Maximum sample() {
        try {
            long bytes = context.query(
                    "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('eventsql.outbox')");
            long events = context.eventSql().outbox().backlogs().stream()
                    .mapToLong(OutboxBacklog::events)
                    .sum();
            return new Maximum(bytes, events);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void atOnce(Runnable first, Runnable second) {
        CompletableFuture<?> running = CompletableFuture.runAsync(second, OutboxBenchmark::start);
        first.run();
        running.join();
    }

    private static void start(Runnable task) {
        Thread.ofPlatform().name("limits-transactions").daemon().start(task);
    }

    private void add(String kind, List<Tenth> tenths, StreamLoad transactions) throws SQLException {
        long committed = transactions.publishedEvents();
        long stored = new StreamLog(context.dataSource(), transactions.stream()).awaitHeads(context, committed);
        for (Tenth tenth : tenths) {
            String row = "tenth " + (tenths.indexOf(tenth) + 1);
            double p99 = Percentiles.ofMicros(tenth.direct.latencyMicros()).p99();
            part.add("tenths", row, kind + "_p99_ms", Figure.of(p99, "ms"))
                    .add("tenths", row, kind + "_bytes", Figure.of(tenth.outbox.bytes(), "bytes"))
                    .add("tenths", row, kind + "_events", Figure.of(tenth.outbox.events()))
                    .requireNoErrors(tenth.direct.errors(), "published directly " + kind + " a snapshot")
                    .requireNoErrors(tenth.transactions.errors(), "published in transactions " + kind + " a snapshot");
        }
        long direct = tenths.stream()
                .mapToLong(tenth -> tenth.direct.publishedEvents())
                .sum();
        Percentiles ofDirect = latency(tenths, Tenth::direct);
        Percentiles ofTransactions = latency(tenths, Tenth::transactions);
        part.add("runs", "direct_events", kind, Figure.of(direct))
                .add("runs", "direct_p50_ms", kind, Figure.of(ofDirect.p50(), "ms"))
                .add("runs", "direct_p99_ms", kind, Figure.of(ofDirect.p99(), "ms"))
                .add("runs", "transactions_p50_ms", kind, Figure.of(ofTransactions.p50(), "ms"))
                .add("runs", "transactions_p99_ms", kind, Figure.of(ofTransactions.p99(), "ms"))
                .add("runs", "committed_events", kind, Figure.of(committed))
                .add("runs", "stored_events", kind, Figure.of(stored))
                .requireNone(committed - stored, "committed events are missing in the stream " + kind + " a snapshot");
    }

    private static Percentiles latency(List<Tenth> tenths, Function<Tenth, PhaseMeasurement> of) {
        return Percentiles.ofMicros(Histograms.merge(
                tenths.stream().map(tenth -> of.apply(tenth).latencyMicros()).toList()));
    }
}
