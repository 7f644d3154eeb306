package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
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
final class ScheduledBenchmark extends LimitsBenchmark {
    private static final PhaseSpec CALLS = Calls.async(4);
    private static final long DUE_PER_SECOND = 1_000;
    /** Until the first one is due: they are written, and the relay has polled since, which no signal tells of this SQL. */
    private static final int DUE_AFTER_SECONDS = 8;

    private static final Duration DUE_WAIT = Duration.ofSeconds(60);
    private static final int SETTLE_SECONDS = 1;

    private static final String INSERT = """
            INSERT INTO eventsql.scheduled_event (ring, due_at, id, stream, key, value, headers, routing_hash)
            SELECT eventsql.scheduled_ring_v1(e.due), e.due, gen_random_uuid(), '%s', 'k' || n %% 1000,
                   convert_to(rpad(n::text || ' ', 200, 'x'), 'UTF8'),
                   json_build_object('due', (extract(epoch FROM e.due) * 1000000)::bigint::text), n::int
            FROM (
                SELECT n, date_trunc('milliseconds', now() + interval '%s') + n * interval '%s' AS due
                FROM generate_series(1, %d) n) e""";

    private final List<Round> none = new ArrayList<>();
    private final List<Round> pending = new ArrayList<>();
    private final String stream;
    private final long events;

    ScheduledBenchmark(LimitsContext context) {
        this(context, (long) context.spec().number(LimitsNumber.SCHEDULED_EVENTS));
    }

    private ScheduledBenchmark(LimitsContext context, long events) {
        super(
                context,
                LimitsPart.SCHEDULED,
                String.format(
                        Locale.ROOT,
                        "publishing with %,d events scheduled, due in a month and later, and with none; then events due"
                                + " at %,d/s; %s",
                        events,
                        DUE_PER_SECOND,
                        context.roundsText()));
        this.stream = context.stream("scheduled");
        this.events = events;
    }

    /**
     * A round.
     *
     * @param eventsPerSecond published as fast as possible, without waiting for answers
     * @param p99Ms at a steady rate, one event per call
     */
    private record Round(double eventsPerSecond, double p99Ms) {}

    @Override
    void measure() throws SQLException {
        try (StreamLoad load = StreamLoad.create(context, stream, LoadedStream.ofLibrary())) {
            for (int round = 0; round <= context.number(LimitsNumber.ROUNDS); round++) {
                write(true);
                Round without = interval(load, round, "no events scheduled");
                write(false);
                Round with = interval(load, round, String.format(Locale.ROOT, "%,d scheduled", events));
                if (round > 0) {
                    none.add(without);
                    pending.add(with);
                }
            }
            Figure rateOfNone = rates(none);
            Figure p99OfNone = p99s(none);
            part.add("rounds", "none", "events_per_second", rateOfNone)
                    .add("rounds", "none", "steady_p99_ms", p99OfNone)
                    .add("rounds", "scheduled", "events_per_second", rates(pending))
                    .add("rounds", "scheduled", "steady_p99_ms", p99s(pending))
                    .add(
                            "rounds",
                            "scheduled / none",
                            "events_per_second",
                            rates(pending).ratioTo(rateOfNone))
                    .add(
                            "rounds",
                            "scheduled / none",
                            "steady_p99_ms",
                            p99s(pending).ratioTo(p99OfNone));
            due();
        } finally {
            context.execute("TRUNCATE eventsql.scheduled_event");
        }
    }

    private static Figure rates(List<Round> rounds) {
        return Figure.ofRounds(rounds.stream().map(Round::eventsPerSecond).toList(), "events/s");
    }

    private static Figure p99s(List<Round> rounds) {
        return Figure.ofRounds(rounds.stream().map(Round::p99Ms).toList(), "ms");
    }

    /** Writes the events, due in a month and later. */
    private void write(boolean removed) throws SQLException {
        context.execute("TRUNCATE eventsql.scheduled_event");
        context.execute(INSERT.formatted(stream, "30 days", "1 second", events));
        if (removed) {
            context.execute("TRUNCATE eventsql.scheduled_event");
        }
        context.sleep(SETTLE_SECONDS);
    }

    private Round interval(StreamLoad load, int round, String what) {
        Duration time = context.spec().round();
        MeasuredInterval fast = load.turn(CALLS, time);
        int rate = context.number(LimitsNumber.SNAPSHOT_RATE);
        PhaseMeasurement steady =
                load.send(PhaseSpec.ofRate("steady", rate, 1), time).measurement();
        part.requireNoErrors(steady.errors(), "next to " + what);
        Round measured = new Round(
                fast.eventsPerSecond(),
                Percentiles.ofMicros(steady.latencyMicros()).p99());
        context.show(
                "Scheduled, %s: %s %,.0f events/s, p99 %.2f ms at %,d/s",
                round == 0 ? "warm-up" : "round " + round, what, measured.eventsPerSecond, measured.p99Ms, rate);
        return measured;
    }

    /** Next to the pending events of the last round. */
    private void due() throws SQLException {
        String dueStream = context.stream("scheduled_due");
        context.eventSql().createStream(StreamSpec.of(dueStream));
        int seconds = context.number(LimitsNumber.SCHEDULED_SECONDS);
        long expected = DUE_PER_SECOND * seconds;
        context.show("Scheduled: %,d events due at %,d/s", expected, DUE_PER_SECOND);
        Histogram lateMicros = new ConcurrentHistogram(3);
        Set<String> handled = ConcurrentHashMap.newKeySet();
        Subscription subscription = context.eventSql().subscribe(ConsumerSpec.of(dueStream, "limits"), event -> {
            long now = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
            lateMicros.recordValue(
                    Math.max(0, now - Long.parseLong(event.headers().get("due"))));
            handled.add(event.text());
        });
        try {
            context.execute(INSERT.formatted(dueStream, DUE_AFTER_SECONDS + " seconds", "1 millisecond", expected));
            context.await(handled::size, expected, DUE_WAIT, Duration.ofSeconds(1));
            context.sleep(1); // what is handled twice shows
        } finally {
            subscription.close();
        }
        String table = " FROM eventsql." + StreamSpec.of(dueStream).tableName();
        long stored = context.query("SELECT count(*)" + table);
        long distinct = context.query("SELECT count(DISTINCT value)" + table);
        long early = context.query("SELECT count(*)" + table
                + " WHERE extract(epoch FROM published_at) * 1000000 < (headers ->> 'due')::bigint");
        part.add("due", "until appended, before the commit", "p50_ms", appendLate(table, 0.5))
                .add("due", "until appended, before the commit", "p99_ms", appendLate(table, 0.99))
                .addLatency("due", "until handled", "", Percentiles.ofMicros(lateMicros))
                .add("due events", "scheduled", "value", Figure.of(expected))
                .add("due events", "stored", "value", Figure.of(stored))
                .add("due events", "distinct", "value", Figure.of(distinct))
                .add("due events", "early", "value", Figure.of(early))
                .requireNone(expected - distinct, "due events were not stored")
                .requireNone(stored - distinct, "due events were stored twice")
                .requireNone(early, "events were stored before they were due");
    }

    private Figure appendLate(String table, double share) throws SQLException {
        return Figure.of(
                context.query("SELECT percentile_disc(" + share + ") WITHIN GROUP (ORDER BY"
                                + " (extract(epoch FROM published_at) * 1000000)::bigint - (headers ->> 'due')::bigint)"
                                + table)
                        / 1_000.0,
                "ms");
    }
}
