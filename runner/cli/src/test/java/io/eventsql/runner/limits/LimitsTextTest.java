package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Storage;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.report.Summary;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class LimitsTextTest {
    private static final LimitsSettings SETTINGS = new LimitsSettings(
            List.of(LimitsBenchmark.values()),
            Storage.ROWS,
            new LimitsSettings.Rounds(3, 2.5),
            300_000,
            new LimitsSettings.Snapshot(600, 2_000, 5),
            new LimitsSettings.Handlers(20_000, 500, 50),
            new LimitsSettings.OutboxLoad(600, 500, 5),
            1_000_000,
            new LimitsSettings.RetentionLoad(3, 20, 5, 100_000, 60),
            new LimitsSettings.CompactionLoad(1_200, 20_000),
            new LimitsSettings.CostLoad(3, 10, 5),
            new LimitsSettings.TailLoad(60, 5),
            new LimitsSettings.ScheduledLoad(1_000_000, 30));
    private static final Summary.Machine MACHINE = new Summary.Machine(
            "on", "on", "18.6", "25", "Linux", new Summary.Provenance(2, 0, "abc", "bash scripts/run", null));

    @Test
    void of_everything_showsTheRatios() {
        assertThat(text(measurements(
                        append(), read(), snapshot(List.of()), handlers(0, 0, 0), transactions(), outbox(300))))
                .isEqualTo("""
                        Limits run ab12cd34

                        APPEND events of 231 bytes: library and COPY into the same tables, committed every 5,000 rows; median of 3 rounds of 2.5 s
                                                                  events/s     lowest to highest   vs COPY BINARY, 1 connection  vs COPY BINARY, 2 connections            95 % interval
                        COPY BINARY, 1 connection                  300,000    300,000 to 300,000
                        COPY BINARY, 2 connections                 400,000    400,000 to 400,000
                        publishAsync, 4 callers                    200,000    200,000 to 200,000                          0.667                          0.500   0.500 (0.500 to 0.500)
                        publish, 50 callers, end to end             45,000      45,000 to 45,000                          0.150                          0.113   0.113 (0.113 to 0.113)
                        bare group commit, 1 connection             40,000      40,000 to 40,000
                        bare group commit, 2 connections            50,000      50,000 to 50,000
                        One event per call end to end, of the faster bare group commit (95 % interval): 0.900 (0.900 to 0.900)

                        READ a partition of 300,000 events from its start; median of 3 rounds of 2.5 s
                        events/s        never analyzed   after ANALYZE       ratio     events/call
                        pages of 100           100,000         400,000       0.250             100
                        pages of 1000           50,000         200,000       0.250           1,000
                        Never analyzed (reltuples -1): the slowest page size of at least 1,000 is 1,000, at 0.500 of the fastest page size
                        After ANALYZE (reltuples 300000): the slowest page size of at least 1,000 is 1,000, at 0.500 of the fastest page size
                        consumer, pages of 10                      200,000    200,000 to 200,000

                        SNAPSHOT: publish latency in ms at 2,000 events/s, one event per call, 600 s without and 600 s with a long-running snapshot

                        1 partition      without p50   without p99      with p50      with p99
                        tenth 1                1.000         2.000         1.000         2.000
                        tenth 2                1.000         2.000         1.000         3.000
                        all                    1.000         2.000         1.000         3.000
                        p99, last tenth / first tenth: without 1.00, with 1.50
                        p99, with / without: all 1.50, last tenth 1.50
                        At the end: 10 dead rows without, 12,000 with; the snapshot was 15,000 transactions old

                        HANDLERS of 10 ms on one partition with events of 1,000 keys
                                                      events    events/s        lost  duplicated  out of order
                        sequential                       500        95.0           0           0             0
                        50 keys in parallel           20,000     4,750.0           0           0             0
                        Speedup by key: 50.0; target: 2,000 events/s in order per key

                        TRANSACTIONS: Spring transactions that write a business row and one event; median of 3 rounds of 2.5 s
                                                                  events/s     lowest to highest
                        with a plain row                            10,000      10,000 to 10,000
                        with a publish                               7,000        7,000 to 7,000
                        relayed                                     40,000      40,000 to 40,000
                        Publish / plain row: 0.700; relayed: measured until the last event is in its stream

                        OUTBOX: 500 transactions/s with one event each and as many direct publishes; 600 s without and 600 s with a long-running snapshot
                        direct p99 in ms, maximum outbox size in MiB, maximum outbox backlog in events
                                     without p99     MiB    events      with p99     MiB    events
                        tenth 1            2.000    1.00        10         2.000    1.00        10
                        tenth 2            2.000    1.00        10         3.000    1.50        10
                        Without: direct p50 1.000, p99 2.000 ms; transactions p50 1.000, p99 4.000 ms; 300 committed, 300 in the stream, 0 failed
                        With: direct p50 1.000, p99 3.000 ms; transactions p50 1.000, p99 4.000 ms; 300 committed, 300 in the stream, 0 failed
                        Direct p99, with / without: 1.50; outbox size with a snapshot, last tenth / second tenth: 1.00; the snapshot was 9,000 transactions old

                        PostgreSQL 18.6 with fsync on and synchronous_commit on, Java 25, 2 CPUs, Linux
                        Commit abc
                        Command: bash scripts/run
                        """.stripTrailing());
    }

    @Test
    void of_oneBenchmark_omitsTheOthers() {
        assertThat(text(measurements(null, read(), null, null, null, null)))
                .contains("READ")
                .doesNotContain("APPEND", "SNAPSHOT", "HANDLERS");
    }

    @Test
    void of_failedEvents_showsThemAndFails() {
        SnapshotResult snapshot = snapshot(List.of(new ErrorCount("SomeException", 3, "some message")));
        LimitsRun.Measurements measured = measurements(null, null, snapshot, null, null, null);

        assertThat(text(measured)).contains("3 events with a snapshot FAILED with SomeException: some message");
        assertThat(result(measured, false).passed()).isFalse();
        assertThat(result(measurements(null, null, snapshot(List.of()), null, null, null), false)
                        .passed())
                .isTrue();
    }

    @Test
    void of_eventsNotHandledOnceAndInOrder_fails() {
        assertThat(result(measured(handlers(0, 0, 0)), false).passed()).isTrue();
        assertThat(result(measured(handlers(1, 0, 0)), false).passed()).isFalse();
        assertThat(result(measured(handlers(0, 1, 0)), false).passed()).isFalse();
        assertThat(result(measured(handlers(0, 0, 1)), false).passed()).isFalse();
    }

    @Test
    void of_committedEventsNotStoredExactlyOnce_fails() {
        assertThat(result(measurements(null, null, null, null, null, outbox(300)), false)
                        .passed())
                .isTrue();
        assertThat(result(measurements(null, null, null, null, null, outbox(299)), false)
                        .passed())
                .isFalse();
        assertThat(result(measurements(null, null, null, null, null, outbox(301)), false)
                        .passed())
                .isFalse();
    }

    @Test
    void of_interrupted_showsItAndFails() {
        LimitsResult result = result(measurements(null, null, null, null, null, null), true);

        assertThat(LimitsText.of(result).getFirst()).isEqualTo("Limits run ab12cd34: INTERRUPTED");
        assertThat(result.passed()).isFalse();
    }

    @Test
    void of_largeStream_showsTheRatiosOfTheRounds() {
        LargeStreamResult.Costs small =
                new LargeStreamResult.Costs(1_000_000, 31, 300_000_000, cost(8, 400), cost(7, 200));
        LargeStreamResult.Costs large =
                new LargeStreamResult.Costs(100_000_000, 231, 30_000_000_000L, cost(9, 410), cost(7, 210));
        LargeStreamResult result = LargeStreamResult.of(
                100_000_000,
                List.of(
                        rounds("publish, small", 100, 200, 300),
                        rounds("publish, large", 95, 180, 300),
                        rounds("end to end, small", 100, 100, 100),
                        rounds("end to end, large", 100, 100, 100)),
                small,
                large);

        assertThat(result.lines())
                .contains(
                        "large / small, median of the rounds (95 % interval): 0.950 (0.900 to 1.000)",
                        "large / small, median of the rounds (95 % interval): 1.000 (1.000 to 1.000)",
                        "large: 231 tables, 30,000 MB; append 9 locks, 410 us; fetch 7 locks, 210 us");
    }

    @Test
    void of_eventsWithinThePolicyMissing_fails() {
        assertThat(retention(0).passed()).isTrue();
        assertThat(retention(1).passed()).isFalse();
        assertThat(retention(0).lines())
                .anyMatch(line -> line.startsWith("idle reader of another segment")
                        && line.endsWith("p99 12.0 ms (12.0), 1.20 of that without; space returned within 2.5 s"));
    }

    private static RetentionResult retention(long missing) {
        return RetentionResult.of(
                Map.of(
                        RetentionResult.Reader.NONE, List.of(interval(10)),
                        RetentionResult.Reader.OF_KEPT_SEGMENT, List.of(interval(12))),
                1_000,
                100_000,
                missing,
                new RetentionResult.Burst(100_000, 60, 6_000_000, 0, 600, percentiles(20)));
    }

    private static RetentionResult.Interval interval(double p99) {
        return new RetentionResult.Interval(100, 0, percentiles(p99), 2.5);
    }

    @Test
    void of_compaction_comparesQuarters() {
        CompactionResult result = CompactionResult.of(IntStream.rangeClosed(1, 8)
                .mapToObj(i -> new CompactionResult.Interval(
                        100, 0, i <= 4 ? 100 : 90, i <= 4 ? 200 : 210, 31, percentiles(2)))
                .toList());

        assertThat(result.passed()).isTrue();
        assertThat(result.lines().getLast())
                .isEqualTo("Last quarter of the time / second quarter: handled 0.900, size 1.050");
    }

    private static StreamLog.StatementCost cost(long locks, double micros) {
        return new StreamLog.StatementCost(locks, micros);
    }

    private static MeasuredRate rounds(String name, double... eventsPerSecond) {
        List<Double> rounds = DoubleStream.of(eventsPerSecond).boxed().toList();
        return new MeasuredRate(name, Statistics.median(rounds), rounds, 1);
    }

    private static LimitsRun.Measurements measurements(
            @Nullable AppendResult append,
            @Nullable ReadResult read,
            @Nullable SnapshotResult snapshot,
            @Nullable HandlersResult handlers,
            @Nullable TransactionsResult transactions,
            @Nullable OutboxResult outbox) {
        return new LimitsRun.Measurements(
                append, read, snapshot, handlers, transactions, outbox, null, null, null, null, null, null, null);
    }

    private static LimitsRun.Measurements measured(HandlersResult handlers) {
        return measurements(null, null, null, handlers, null, null);
    }

    private static HandlersResult handlers(long lost, long duplicated, long violations) {
        return HandlersResult.of(
                10,
                1_000,
                2_000,
                new HandlersResult.HandlerRun(1, 500, 95, 0, 0, 0),
                new HandlersResult.HandlerRun(50, 20_000, 4_750, lost, duplicated, violations));
    }

    private static String text(LimitsRun.Measurements measured) {
        return String.join("\n", LimitsText.of(result(measured, false)));
    }

    private static LimitsResult result(LimitsRun.Measurements measured, boolean interrupted) {
        return new LimitsResult("ab12cd34", interrupted, MACHINE, SETTINGS, measured);
    }

    private static AppendResult append() {
        return AppendResult.of(
                230.8,
                5_000,
                List.of(
                        rate("COPY BINARY, 1 connection", 300_000, 5_000),
                        rate("COPY BINARY, 2 connections", 400_000, 5_000)),
                List.of(
                        rate("publishAsync, 4 callers", 200_000, 1),
                        rate("publish, 50 callers, end to end", 45_000, 1)),
                List.of(
                        rate("bare group commit, 1 connection", 40_000, 1),
                        rate("bare group commit, 2 connections", 50_000, 1)));
    }

    private static ReadResult read() {
        return new ReadResult(
                300_000,
                sizes(-1, 100_000),
                sizes(300_000, 400_000),
                List.of(new ReadResult.PageSizeRate(10, rate("consumer, pages of 10", 200_000, 10))));
    }

    private static ReadResult.PageSizeRates sizes(double reltuples, double fastest) {
        return ReadResult.PageSizeRates.of(
                List.of(new StreamTables.SegmentStatistics("t", 1, reltuples, 0)),
                List.of(
                        new ReadResult.PageSizeRate(100, rate("pages of 100", fastest, 100)),
                        new ReadResult.PageSizeRate(1_000, rate("pages of 1000", fastest / 2, 1_000))));
    }

    private static MeasuredRate rate(String name, double eventsPerSecond, double eventsPerCall) {
        return new MeasuredRate(name, eventsPerSecond, List.of(eventsPerSecond), eventsPerCall);
    }

    private static SnapshotResult snapshot(List<ErrorCount> errors) {
        return new SnapshotResult(List.of(
                SnapshotResult.StreamResult.of(1, run(List.of(), 2, null, 10), run(errors, 3, 15_000L, 12_000))));
    }

    private static SnapshotResult.Run run(
            List<ErrorCount> errors, double lastP99, @Nullable Long snapshotAge, long deadRows) {
        List<SnapshotResult.Tenth> tenths = IntStream.of(2, (int) lastP99)
                .mapToObj(p99 -> new SnapshotResult.Tenth(1, percentiles(p99), ""))
                .toList();
        return new SnapshotResult.Run(
                2,
                errors.stream().mapToLong(ErrorCount::events).sum(),
                errors,
                percentiles(lastP99),
                lastP99 / 2,
                tenths,
                snapshotAge,
                deadRows);
    }

    private static TransactionsResult transactions() {
        return TransactionsResult.of(
                rate("with a plain row", 10_000, 1), rate("with a publish", 7_000, 1), rate("relayed", 40_000, 100));
    }

    private static OutboxResult outbox(long inStream) {
        return OutboxResult.of(outboxRun(2, 1.0, 300, null), outboxRun(3, 1.5, inStream, 9_000L));
    }

    private static OutboxResult.Run outboxRun(
            double p99, double lastMegabytes, long inStream, @Nullable Long snapshotAge) {
        return new OutboxResult.Run(
                300,
                percentiles(p99),
                300,
                percentiles(4),
                inStream,
                List.of(),
                List.of(
                        new OutboxResult.Tenth(percentiles(2), 1 << 20, 10),
                        new OutboxResult.Tenth(percentiles(p99), (long) (lastMegabytes * (1 << 20)), 10)),
                snapshotAge);
    }

    private static Percentiles percentiles(double p99) {
        return new Percentiles(1, 1, p99, p99, p99, 1);
    }
}
