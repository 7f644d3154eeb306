package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/**
 * Measures publishing with and without many scheduled events, in turns, and how late events are handled that are due at a steady
 * rate. Before each interval the same events are written; without them, they are removed again, so that both intervals follow
 * the same work.
 */
final class ScheduledBenchmark {
    private static final int CALLERS = 4;
    private static final int PARTITIONS = 10;
    private static final long DUE_PER_SECOND = 1_000;
    /** Until the first one is due: they are written, and the relay has polled since, which no signal tells of this SQL. */
    private static final int DUE_AFTER_SECONDS = 8;

    private static final int DUE_WAIT_SECONDS_MAX = 60;
    private static final int SETTLE_SECONDS = 1;

    private static final String INSERT = """
            INSERT INTO eventsql.scheduled_event (ring, due_at, id, stream, key, value, headers, routing_hash)
            SELECT eventsql.scheduled_ring_v1(e.due), e.due, gen_random_uuid(), '%s', 'k' || n %% 1000,
                   convert_to(rpad(n::text || ' ', 200, 'x'), 'UTF8'),
                   json_build_object('due', (extract(epoch FROM e.due) * 1000000)::bigint::text), n::int
            FROM (
                SELECT n, date_trunc('milliseconds', now() + interval '%s') + n * interval '%s' AS due
                FROM generate_series(1, %d) n) e""";

    private final LimitsContext context;
    private final LimitsSettings settings;
    private final List<ScheduledResult.Round> none = new ArrayList<>();
    private final List<ScheduledResult.Round> pending = new ArrayList<>();
    private final String stream;

    ScheduledBenchmark(LimitsContext context, LimitsSettings settings) {
        this.context = context;
        this.settings = settings;
        this.stream = context.stream("scheduled");
    }

    /** @throws RunStoppedException after a stop signal */
    ScheduledResult measure() throws SQLException {
        context.eventSql().createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        try {
            for (int round = 0; round <= settings.rounds().count(); round++) {
                write(true);
                ScheduledResult.Round without = interval(round, "no events scheduled");
                write(false);
                ScheduledResult.Round with = interval(
                        round,
                        String.format(
                                Locale.ROOT,
                                "%,d scheduled",
                                settings.scheduled().events()));
                if (round > 0) {
                    none.add(without);
                    pending.add(with);
                }
            }
            return new ScheduledResult(settings.scheduled().events(), none, pending, due());
        } finally {
            execute("TRUNCATE eventsql.scheduled_event");
        }
    }

    /** Writes the events, due in a month and later. */
    private void write(boolean removed) throws SQLException {
        execute("TRUNCATE eventsql.scheduled_event");
        execute(INSERT.formatted(
                stream, "30 days", "1 second", settings.scheduled().events()));
        if (removed) {
            execute("TRUNCATE eventsql.scheduled_event");
        }
        context.sleep(SETTLE_SECONDS);
    }

    private ScheduledResult.Round interval(int round, String what) {
        MeasuredInterval fast = PublishVariant.async(context.publishLoad(stream, 1), CALLERS)
                .run(settings.rounds().duration());
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        LoadPhase phase = LoadPhase.ofNanos(
                false, anchor, anchor.nanos(), settings.rounds().duration().toNanos());
        PublishMeter meter = new PublishMeter();
        long sent =
                new OpenLoop(context.publishLoad(stream, 1), settings.snapshot().eventsPerSecond()).run(phase, meter);
        PhaseMeasurement steady = meter.measurement(sent, anchor);
        context.checkStopped();
        ScheduledResult.Round measured = new ScheduledResult.Round(
                fast.eventsPerSecond(), Percentiles.ofMicros(steady.latencyMicros()), steady.failedEvents());
        context.progress()
                .printf(
                        Locale.ROOT,
                        "Scheduled, %s: %s %,.0f events/s, p99 %.2f ms at %,d/s%n",
                        round == 0 ? "warm-up" : "round " + round,
                        what,
                        measured.eventsPerSecond(),
                        measured.latencyMs().p99(),
                        settings.snapshot().eventsPerSecond());
        return measured;
    }

    /** Next to the pending events of the last round. */
    private ScheduledResult.Due due() throws SQLException {
        String dueStream = context.stream("scheduled_due");
        context.eventSql().createStream(StreamSpec.of(dueStream).withPartitions(PARTITIONS));
        int seconds = settings.scheduled().dueSeconds();
        long events = DUE_PER_SECOND * seconds;
        context.progress().printf(Locale.ROOT, "Scheduled: %,d events due at %,d/s%n", events, DUE_PER_SECOND);
        Histogram lateMicros = new ConcurrentHistogram(3);
        Set<String> handled = ConcurrentHashMap.newKeySet();
        Subscription subscription = context.eventSql().subscribe(ConsumerSpec.of(dueStream, "limits"), event -> {
            long now = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
            lateMicros.recordValue(
                    Math.max(0, now - Long.parseLong(event.headers().get("due"))));
            handled.add(event.text());
        });
        try {
            execute(INSERT.formatted(dueStream, DUE_AFTER_SECONDS + " seconds", "1 millisecond", events));
            long end = context.clock().nanos()
                    + Duration.ofSeconds(DUE_AFTER_SECONDS + seconds + DUE_WAIT_SECONDS_MAX)
                            .toNanos();
            while (handled.size() < events && context.clock().nanos() - end < 0) {
                context.sleep(1);
            }
            context.sleep(1); // what is handled twice shows
        } finally {
            subscription.close();
        }
        String table = StreamSpec.of(dueStream).tableName();
        return new ScheduledResult.Due(
                events,
                number("SELECT count(*) FROM eventsql." + table),
                number("SELECT count(DISTINCT value) FROM eventsql." + table),
                number("SELECT count(*) FROM eventsql." + table
                        + " WHERE extract(epoch FROM published_at) * 1000000 < (headers ->> 'due')::bigint"),
                appendLateMs(table, 0.5),
                appendLateMs(table, 0.99),
                Percentiles.ofMicros(lateMicros));
    }

    private double appendLateMs(String table, double share) throws SQLException {
        return number("SELECT percentile_disc(" + share + ") WITHIN GROUP (ORDER BY"
                        + " (extract(epoch FROM published_at) * 1000000)::bigint - (headers ->> 'due')::bigint)"
                        + " FROM eventsql." + table)
                / 1_000.0;
    }

    private long number(String sql) throws SQLException {
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
