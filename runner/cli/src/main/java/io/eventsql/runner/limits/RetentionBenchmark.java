package io.eventsql.runner.limits;

import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * Publishes at full rate while retention expires segments continuously: without readers, with a transaction that has read a
 * segment which stays, and with one that has read the segment which expires next. Then publishes at a fixed rate into
 * segments that are full within a second.
 */
final class RetentionBenchmark extends LimitsBenchmark {
    private static final PhaseSpec CALLS = Calls.waiting(50, 1);
    private static final int PARTITIONS = 2;
    private static final int SEGMENT_EVENTS = 10_000;
    private static final long KEPT_EVENTS_MAX = 1_000_000;
    /** More than a partition gets: the newest segment at the beginning of an interval does not expire before its end. */
    private static final long KEPT_EVENTS_PER_SECOND = 100_000;

    private static final int BURST_CALL_EVENTS = 100;
    private static final long POLL_NANOS = Duration.ofMillis(100).toNanos();
    private static final Duration WAIT_MAX = Duration.ofMinutes(3);

    private final long keptEvents;

    RetentionBenchmark(LimitsContext context) {
        super(
                context,
                LimitsPart.RETENTION,
                "publishing one by one at full rate while segments of 10,000 events expire");
        this.keptEvents =
                Math.min(KEPT_EVENTS_MAX, KEPT_EVENTS_PER_SECOND * context.number(LimitsNumber.RETENTION_SECONDS));
    }

    /** A transaction that is idle after it has read an event of the stream by SQL. */
    private enum Reader {
        NONE("no reader"),
        OF_KEPT_SEGMENT("idle reader of another segment"),
        OF_EXPIRING_SEGMENT("idle reader of the expiring segment");

        private final String label;

        Reader(String label) {
            this.label = label;
        }
    }

    /**
     * One interval.
     *
     * @param returnedSeconds after how many seconds all expired segments were empty: after the load with a reader that stays,
     *     otherwise after the reader has ended, too
     */
    private record Interval(long events, double p99Ms, double returnedSeconds) {}

    @Override
    void measure() throws SQLException {
        String stream = context.stream("retention");
        LoadedStream loaded = LoadedStream.ofLibrary()
                .withPartitions(PARTITIONS)
                .with("segment_events", String.valueOf(SEGMENT_EVENTS))
                .with("retained_events", String.valueOf(keptEvents));
        try (StreamLoad load = StreamLoad.create(context, stream, loaded)) {
            StreamLog log = new StreamLog(context.dataSource(), stream);
            for (int partition = 0; partition < PARTITIONS; partition++) {
                log.copy(context.run(), partition, keptEvents, context.stop());
            }
            context.checkStopped();
            load.warmUp(CALLS, Duration.ofSeconds(context.number(LimitsNumber.WARMUP_SECONDS)));
            addReaders(measureReaders(load, log));
            addKept(log);
        }
        burst();
    }

    private Map<Reader, List<Interval>> measureReaders(StreamLoad load, StreamLog log) throws SQLException {
        Map<Reader, List<Interval>> intervals = new EnumMap<>(Reader.class);
        int rounds = context.number(LimitsNumber.ROUNDS);
        for (int round = 1; round <= rounds; round++) {
            for (Reader reader : Reader.values()) {
                Interval interval = measure(reader, load, log);
                context.show(
                        "Retention, round %d of %d, %s: p99 %.1f ms, %,d events, space returned after %.1f s",
                        round, rounds, reader.label, interval.p99Ms, interval.events, interval.returnedSeconds);
                intervals.computeIfAbsent(reader, added -> new ArrayList<>()).add(interval);
            }
        }
        return intervals;
    }

    private void addKept(StreamLog log) throws SQLException {
        long missing = missing(log);
        part.add("expired_events", Figure.of(context.query("SELECT expired_events FROM eventsql.retention_pass")))
                .add(
                        "kept_events_min",
                        Figure.of(context.query(
                                "SELECT min(next_offset - log_start) FROM eventsql.partition_head WHERE stream = ?",
                                log.stream())))
                .add("missing_events", Figure.of(missing))
                .requireNone(missing, "events are missing between the log's start and its head");
    }

    private void addReaders(Map<Reader, List<Interval>> intervals) {
        Figure none = figure(intervals, Reader.NONE, Interval::p99Ms, "ms");
        for (Reader reader : intervals.keySet()) {
            Figure p99 = figure(intervals, reader, Interval::p99Ms, "ms");
            part.add("readers", reader.label, "events", figure(intervals, reader, Interval::events, ""))
                    .add("readers", reader.label, "p99_ms", p99)
                    .add("readers", reader.label, "p99 / no reader", p99.ratioTo(none))
                    .add(
                            "readers",
                            reader.label,
                            "space_returned_s",
                            figure(intervals, reader, Interval::returnedSeconds, "s"));
        }
    }

    private static Figure figure(
            Map<Reader, List<Interval>> intervals, Reader reader, ToDoubleFunction<Interval> value, String unit) {
        return Figure.ofRounds(
                intervals.getOrDefault(reader, List.of()).stream()
                        .map(interval -> value.applyAsDouble(interval))
                        .toList(),
                unit);
    }

    private Interval measure(Reader reader, StreamLoad load, StreamLog log) throws SQLException {
        PhaseMeasurement measured;
        try (Connection connection = context.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try {
                read(connection, reader, log);
                measured = load.send(CALLS, Duration.ofSeconds(context.number(LimitsNumber.RETENTION_SECONDS)))
                        .measurement();
                if (reader == Reader.OF_KEPT_SEGMENT) { // the space is returned although it still reads
                    return interval(measured, awaitReturned(log));
                }
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        }
        return interval(measured, awaitReturned(log));
    }

    private Interval interval(PhaseMeasurement measured, double returnedSeconds) {
        part.requireNoErrors(measured.errors(), "next to retention");
        return new Interval(
                measured.publishedEvents(),
                Percentiles.ofMicros(measured.latencyMicros()).p99(),
                returnedSeconds);
    }

    /** Reads by SQL over the stream's table, so that the transaction holds locks on its parents and on one segment. */
    private void read(Connection connection, Reader reader, StreamLog log) throws SQLException {
        if (reader == Reader.NONE) {
            return;
        }
        String offset = reader == Reader.OF_KEPT_SEGMENT ? "h.next_offset - 1" : "h.log_start";
        long at = context.query(
                "SELECT " + offset + " FROM eventsql.partition_head h WHERE h.partition = 0 AND h.stream = ?",
                log.stream());
        Jdbc.execute(connection, "SELECT 1 FROM " + log.table() + " WHERE partition = 0 AND event_offset = " + at);
    }

    /** Returns after how many seconds no expired segment of the stream has space, once the load has ended. */
    private double awaitReturned(StreamLog log) throws SQLException {
        long start = context.clock().nanos();
        String expired = "SELECT count(*) FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                + " JOIN eventsql.stream_partition p USING (stream_id, partition)"
                + " JOIN eventsql.partition_head h ON h.stream = s.name AND h.partition = p.partition"
                + " WHERE s.name = ? AND (g.state = 'expired' OR g.state IN ('open', 'closed')"
                + " AND h.next_offset - g.end_offset >= s.retention_events)";
        while (context.query(expired, log.stream()) > 0) {
            context.checkStopped();
            if (context.clock().nanos() - start > WAIT_MAX.toNanos()) {
                throw new IllegalStateException("The space of expired segments is not returned after " + WAIT_MAX);
            }
            context.clock().parkNanos(POLL_NANOS);
        }
        return (context.clock().nanos() - start) / 1e9;
    }

    /** Returns how many events between the log's start and its head are missing. */
    private long missing(StreamLog log) throws SQLException {
        return context.query(
                        "SELECT sum(next_offset - log_start) FROM eventsql.partition_head WHERE stream = ?",
                        log.stream())
                - context.query(
                        "SELECT count(*) FROM " + log.table() + " e JOIN eventsql.partition_head h"
                                + " ON h.partition = e.partition AND e.event_offset >= h.log_start WHERE h.stream = ?",
                        log.stream());
    }

    /** Publishes at a fixed rate in calls of 100 events, each segment of 10,000 events. */
    private void burst() throws SQLException {
        String stream = context.stream("burst");
        LoadedStream loaded = LoadedStream.ofLibrary().with("segment_events", String.valueOf(SEGMENT_EVENTS));
        long rate = context.number(LimitsNumber.BURST_RATE);
        PhaseSpec phase = PhaseSpec.ofRate("burst", rate, BURST_CALL_EVENTS);
        PhaseMeasurement measured;
        try (StreamLoad load = StreamLoad.create(context, stream, loaded)) {
            measured = load.send(phase, rate * context.number(LimitsNumber.BURST_SECONDS))
                    .measurement();
        }
        String row = "into segments of 10,000 events";
        part.add("burst", row, "offered_events_per_second", Figure.of(rate, "events/s"))
                .add("burst", row, "events", Figure.of(measured.publishedEvents()))
                .add(
                        "burst",
                        row,
                        "segments",
                        Figure.of(new StreamLog(context.dataSource(), stream).heads() / SEGMENT_EVENTS))
                .addLatency("burst", row, "", Percentiles.ofMicros(measured.latencyMicros()))
                .requireNoErrors(measured.errors(), "of the burst");
    }
}
