package io.eventsql.runner.limits;

import io.eventsql.Settings;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Measures publish latency at a steady rate with and without a long-running transaction that prevents the removal of
 * dead row versions. Each run has its own stream, starts after a warm-up, and finds the shared tables vacuumed.
 */
final class SnapshotBenchmark {
    private static final List<Integer> PARTITIONS = List.of(1, 10);

    /** The table in which each append inserts and deletes a row. */
    private static final String HEADS = "producer_batch";

    private final LimitsContext context;
    private final LimitsSettings.Snapshot settings;

    SnapshotBenchmark(LimitsContext context, LimitsSettings.Snapshot settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    SnapshotResult measure() throws SQLException {
        List<SnapshotResult.StreamResult> streams = new ArrayList<>();
        for (int partitions : PARTITIONS) {
            SnapshotResult.Run without = runWithout(partitions);
            SnapshotResult.Run with = runWith(partitions);
            streams.add(SnapshotResult.StreamResult.of(partitions, without, with));
        }
        return new SnapshotResult(streams);
    }

    private SnapshotResult.Run runWithout(int partitions) throws SQLException {
        OpenLoop load = prepare("without", partitions);
        List<PhaseMeasurement> tenths = publish(load);
        return SnapshotResult.Run.of(tenths, null, deadRows());
    }

    private SnapshotResult.Run runWith(int partitions) throws SQLException {
        OpenLoop load = prepare("with", partitions);
        try (HeldSnapshot snapshot = HeldSnapshot.take(context.dataSource())) {
            List<PhaseMeasurement> tenths = publish(load);
            return SnapshotResult.Run.of(tenths, snapshot.ageTransactions(), deadRows());
        }
    }

    /** Creates the stream and warms up. */
    private OpenLoop prepare(String kind, int partitions) throws SQLException {
        context.progress()
                .println("Snapshot: " + kind + " a long-running snapshot, " + partitions
                        + (partitions == 1 ? " partition, " : " partitions, ") + settings.eventsPerSecond()
                        + " events/s for " + settings.seconds() + " s");
        execute("VACUUM " + Settings.DEFAULT_SCHEMA + "." + HEADS);
        String stream = context.stream("snapshot_" + partitions + "_" + kind);
        context.eventSql().createStream(context.streamSpec(stream).withPartitions(partitions));
        OpenLoop load = new OpenLoop(context.publishLoad(stream, 1), settings.eventsPerSecond());
        load.run(phase(true, settings.warmupSeconds()), new PublishMeter());
        context.checkStopped();
        return load;
    }

    private List<PhaseMeasurement> publish(OpenLoop load) {
        LoadPhase phase = phase(false, settings.seconds());
        TenthsMeter meter = new TenthsMeter(
                phase.startNanos(), Duration.ofSeconds(settings.seconds()).toNanos());
        load.run(phase, meter);
        context.checkStopped();
        return meter.measurements(phase.anchor());
    }

    private LoadPhase phase(boolean warmup, int seconds) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        return LoadPhase.ofEvents(warmup, anchor, anchor.nanos(), settings.eventsPerSecond() * seconds);
    }

    private long deadRows() throws SQLException {
        String sql = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = '" + Settings.DEFAULT_SCHEMA
                + "' AND relname = '" + HEADS + "'";
        try (Connection connection = context.dataSource().getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getLong(1);
        }
    }

    private void execute(String sql) throws SQLException {
        try (Connection connection = context.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
