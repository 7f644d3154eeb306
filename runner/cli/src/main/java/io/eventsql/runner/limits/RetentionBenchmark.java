package io.eventsql.runner.limits;

import io.eventsql.Retention;
import io.eventsql.StreamSpec;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Publishes at full rate while retention expires segments continuously: without readers, with a transaction that has read a
 * segment which stays, and with one that has read the segment which expires next. Then publishes at a fixed rate into
 * segments that are full within a second.
 */
final class RetentionBenchmark {
    private static final int CALLERS = 50;
    private static final int PARTITIONS = 2;
    private static final int SEGMENT_EVENTS = 10_000;
    /** More than a partition gets during an interval: the newest segment at its beginning does not expire. */
    private static final long KEPT_EVENTS = 1_000_000;

    private static final int BURST_PARTITIONS = 10;
    private static final int BURST_CALL_EVENTS = 100;
    private static final long POLL_NANOS = Duration.ofMillis(100).toNanos();
    private static final Duration WAIT_MAX = Duration.ofMinutes(3);

    private final LimitsContext context;
    private final LimitsSettings.RetentionLoad settings;

    RetentionBenchmark(LimitsContext context, LimitsSettings.RetentionLoad settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    RetentionResult measure() throws SQLException {
        String stream = context.stream("retention");
        context.eventSql()
                .createStream(StreamSpec.of(stream)
                        .withPartitions(PARTITIONS)
                        .withSegmentSize(SEGMENT_EVENTS)
                        .withRetention(Retention.FOREVER.withMaxEvents(KEPT_EVENTS)));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        for (int partition = 0; partition < PARTITIONS; partition++) {
            log.copy(context.run(), partition, KEPT_EVENTS, context.stop());
        }
        context.checkStopped();
        LoadGenerator load = Callers.waiting(context.publishLoad(stream, 1), CALLERS);
        run(load, LoadPhase.ofNanos(true, anchor(), context.clock().nanos(), seconds(settings.warmupSeconds())));

        Map<RetentionResult.Reader, List<RetentionResult.Interval>> intervals =
                new EnumMap<>(RetentionResult.Reader.class);
        for (int round = 1; round <= settings.rounds(); round++) {
            for (RetentionResult.Reader reader : RetentionResult.Reader.values()) {
                RetentionResult.Interval interval = measure(reader, load, log);
                context.progress()
                        .printf(
                                Locale.ROOT,
                                "Retention, round %d of %d, %s: p99 %.1f ms, %,d events, space returned after %.1f s%n",
                                round,
                                settings.rounds(),
                                reader.label(),
                                interval.latencyMs().p99(),
                                interval.events(),
                                interval.returnedSeconds());
                intervals.computeIfAbsent(reader, added -> new ArrayList<>()).add(interval);
            }
        }
        return RetentionResult.of(
                intervals,
                log.number("SELECT expired_events FROM eventsql.retention_pass WHERE ? <> ''", stream),
                keptMin(log, stream),
                missing(log, stream),
                burst());
    }

    private RetentionResult.Interval measure(RetentionResult.Reader reader, LoadGenerator load, StreamLog log)
            throws SQLException {
        PhaseMeasurement measured;
        try (Connection connection = context.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try {
                read(connection, reader, log);
                measured = run(
                        load, LoadPhase.ofNanos(false, anchor(), context.clock().nanos(), seconds(settings.seconds())));
                if (reader == RetentionResult.Reader.OF_KEPT_SEGMENT) { // the space is returned although it still reads
                    return interval(measured, awaitReturned(log));
                }
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        }
        return interval(measured, awaitReturned(log));
    }

    private static RetentionResult.Interval interval(PhaseMeasurement measured, double returnedSeconds) {
        return new RetentionResult.Interval(
                measured.publishedEvents(),
                measured.failedEvents(),
                Percentiles.ofMicros(measured.latencyMicros()),
                returnedSeconds);
    }

    /** Reads by SQL over the stream's table, so that the transaction holds locks on its parents and on one segment. */
    private static void read(Connection connection, RetentionResult.Reader reader, StreamLog log) throws SQLException {
        if (reader == RetentionResult.Reader.NONE) {
            return;
        }
        String offset = reader == RetentionResult.Reader.OF_KEPT_SEGMENT ? "h.next_offset - 1" : "h.log_start";
        long at = log.number(
                "SELECT " + offset + " FROM eventsql.partition_head h WHERE h.partition = 0 AND h.stream = ?",
                log.stream());
        try (PreparedStatement statement = connection.prepareStatement(
                "SELECT 1 FROM " + log.table() + " WHERE partition = 0 AND event_offset = " + at)) {
            statement.executeQuery().close();
        }
    }

    /** Returns after how many seconds no expired segment of the stream has space, once the load has ended. */
    private double awaitReturned(StreamLog log) throws SQLException {
        long start = context.clock().nanos();
        String expired = "SELECT count(*) FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                + " JOIN eventsql.stream_partition p USING (stream_id, partition)"
                + " JOIN eventsql.partition_head h ON h.stream = s.name AND h.partition = p.partition"
                + " WHERE s.name = ? AND (g.state = 'expired' OR g.state IN ('open', 'closed')"
                + " AND h.next_offset - g.end_offset >= s.retention_events)";
        while (log.number(expired, log.stream()) > 0) {
            context.checkStopped();
            if (context.clock().nanos() - start > WAIT_MAX.toNanos()) {
                throw new IllegalStateException("The space of expired segments is not returned after " + WAIT_MAX);
            }
            context.clock().parkNanos(POLL_NANOS);
        }
        return (context.clock().nanos() - start) / 1e9;
    }

    private static long keptMin(StreamLog log, String stream) throws SQLException {
        return log.number("SELECT min(next_offset - log_start) FROM eventsql.partition_head WHERE stream = ?", stream);
    }

    /** Returns how many events between the log's start and its head are missing. */
    private static long missing(StreamLog log, String stream) throws SQLException {
        return log.number("SELECT sum(next_offset - log_start) FROM eventsql.partition_head WHERE stream = ?", stream)
                - log.number(
                        "SELECT count(*) FROM " + log.table() + " e JOIN eventsql.partition_head h"
                                + " ON h.partition = e.partition AND e.event_offset >= h.log_start WHERE h.stream = ?",
                        stream);
    }

    private RetentionResult.Burst burst() throws SQLException {
        String stream = context.stream("burst");
        context.eventSql()
                .createStream(
                        StreamSpec.of(stream).withPartitions(BURST_PARTITIONS).withSegmentSize(SEGMENT_EVENTS));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        PhaseMeasurement measured = run(
                new OpenLoop(context.publishLoad(stream, BURST_CALL_EVENTS), settings.burstRate()),
                LoadPhase.ofEvents(
                        false, anchor(), context.clock().nanos(), settings.burstRate() * settings.burstSeconds()));
        return new RetentionResult.Burst(
                settings.burstRate(),
                settings.burstSeconds(),
                measured.publishedEvents(),
                measured.failedEvents(),
                log.heads() / SEGMENT_EVENTS,
                Percentiles.ofMicros(measured.latencyMicros()));
    }

    private PhaseMeasurement run(LoadGenerator load, LoadPhase phase) {
        PublishMeter meter = new PublishMeter();
        long sent = load.run(phase, meter);
        context.checkStopped();
        return meter.measurement(sent, phase.anchor());
    }

    private ClockAnchor anchor() {
        return ClockAnchor.now(context.clock());
    }

    private static long seconds(long seconds) {
        return Duration.ofSeconds(seconds).toNanos();
    }
}
