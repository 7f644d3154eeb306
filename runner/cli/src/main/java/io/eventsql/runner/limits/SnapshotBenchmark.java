package io.eventsql.runner.limits;

import io.eventsql.Settings;
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

/**
 * Measures publish latency at a steady rate with and without a long-running transaction that prevents the removal of
 * dead row versions. Each run has its own stream, starts after a warm-up, and finds the shared tables vacuumed.
 */
final class SnapshotBenchmark extends LimitsBenchmark {
    private static final List<Integer> PARTITIONS = List.of(1, 10);

    /** The table in which each append inserts and deletes a row. */
    private static final String HEADS = "producer_batch";

    private static final int TENTHS = 10;

    private final int rate;
    private final int seconds;

    SnapshotBenchmark(LimitsContext context) {
        this(context, context.number(LimitsNumber.SNAPSHOT_RATE), context.number(LimitsNumber.SNAPSHOT_SECONDS));
    }

    private SnapshotBenchmark(LimitsContext context, int rate, int seconds) {
        super(
                context,
                LimitsPart.SNAPSHOT,
                "publish latency at " + rate + " events/s, one event per call, " + seconds + " s without and " + seconds
                        + " s with a long-running snapshot");
        this.rate = rate;
        this.seconds = seconds;
    }

    @Override
    void measure() throws SQLException {
        for (int partitions : PARTITIONS) {
            String table = partitions + (partitions == 1 ? " partition" : " partitions");
            List<Percentiles> without = run(table, "without", partitions);
            List<Percentiles> with = run(table, "with", partitions);
            part.add(table + ", ratios", "p99, with / without", "all", ratio(with.getLast(), without.getLast()))
                    .add(
                            table + ", ratios",
                            "p99, with / without",
                            "last tenth",
                            ratio(with.get(TENTHS - 1), without.get(TENTHS - 1)));
        }
    }

    private static Figure ratio(Percentiles of, Percentiles to) {
        return Figure.of(Statistics.ratio(of.p99(), to.p99()));
    }

    /** Returns the latencies of each tenth and of the whole run. */
    private List<Percentiles> run(String table, String kind, int partitions) throws SQLException {
        context.show("Snapshot: %s a long-running snapshot, %s, %d events/s for %d s", kind, table, rate, seconds);
        context.execute("VACUUM " + Settings.DEFAULT_SCHEMA + "." + HEADS);
        PhaseSpec phase = PhaseSpec.ofRate(kind, rate, 1);
        LoadedStream loaded = context.loadedStream().withPartitions(partitions);
        List<PhaseMeasurement> tenths;
        try (StreamLoad load =
                StreamLoad.create(context, context.stream("snapshot_" + partitions + "_" + kind), loaded)) {
            load.warmUp(phase, Duration.ofSeconds(context.number(LimitsNumber.WARMUP_SECONDS)));
            if (kind.equals("with")) {
                try (HeldSnapshot snapshot = HeldSnapshot.take(context.dataSource())) {
                    tenths = publish(load, phase);
                    part.add(table, "snapshot_age_transactions", kind, Figure.of(snapshot.ageTransactions()));
                    part.add(table, "dead_rows", kind, deadRows());
                }
            } else {
                tenths = publish(load, phase);
                part.add(table, "dead_rows", kind, deadRows());
            }
        }
        List<Percentiles> latencies = new ArrayList<>();
        for (PhaseMeasurement tenth : tenths) {
            latencies.add(Percentiles.ofMicros(tenth.latencyMicros()));
            String row = "tenth " + latencies.size();
            part.requireNoErrors(tenth.errors(), kind + " a snapshot, " + table)
                    .addLatency(table, row, kind + "_", latencies.getLast())
                    .add(table, row, kind + "_events", Figure.of(tenth.publishedEvents()))
                    .addHistogram(table + ", " + kind + ", " + row, tenth.latencyMicros());
        }
        part.add(
                table + ", ratios",
                "p99, last tenth / first tenth",
                kind,
                ratio(latencies.getLast(), latencies.getFirst()));
        latencies.add(Percentiles.ofMicros(Histograms.merge(
                tenths.stream().map(PhaseMeasurement::latencyMicros).toList())));
        part.addLatency(table, "all", kind + "_", latencies.getLast());
        return latencies;
    }

    private List<PhaseMeasurement> publish(StreamLoad load, PhaseSpec phase) {
        List<PhaseMeasurement> measured = new ArrayList<>();
        for (int tenth = 0; tenth < TENTHS; tenth++) {
            measured.add(load.send(phase, (long) rate * seconds / TENTHS).measurement());
        }
        return measured;
    }

    private Figure deadRows() throws SQLException {
        return Figure.of(context.query(
                "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = ? AND relname = ?",
                Settings.DEFAULT_SCHEMA,
                HEADS));
    }
}
