package io.eventsql.runner.spec;

import java.util.Locale;

/** The numbers that configure the parts of a limits run. */
public enum LimitsNumber {
    /** Measured rounds of the parts with rounds, after one warm-up round. */
    ROUNDS(3, 1, 1_000),
    /** Duration of each measurement in a round of append, read, transactions, large, scheduled. */
    ROUND_SECONDS(3, 0.05, 3_600),
    /** Events in the partition to read. */
    READ_EVENTS(300_000, 1_000, 1_000_000_000),
    /** Duration of each of the four runs of snapshot: with and without, 1 and 10 partitions. */
    SNAPSHOT_SECONDS(60, 1, Limits.SECONDS_MAX),
    /** Events per second of snapshot and scheduled, one per call. */
    SNAPSHOT_RATE(2_000, 1, Limits.RATE_MAX),
    /** Warm-up before each run of snapshot, outbox, retention, cost, fanout and tail, not measured. */
    WARMUP_SECONDS(5, 0, Limits.SECONDS_MAX),
    /** Events handled by key in parallel. */
    HANDLERS_EVENTS(20_000, 1, 10_000_000),
    /** Events handled sequentially, at most 100 per second. */
    HANDLERS_SEQUENTIAL_EVENTS(500, 1, 10_000_000),
    /** Keys handled in parallel, out of 1,000. */
    HANDLERS_CONCURRENCY(50, 1, 10_000),
    /** Duration of each of the two runs of outbox: with and without a snapshot. */
    OUTBOX_SECONDS(60, 1, Limits.SECONDS_MAX),
    /** Transactions per second of outbox, one event each, and as many direct publishes. */
    OUTBOX_RATE(500, 1, Limits.RATE_MAX),
    /** Events of the large stream; 100,000,000 need 30 GB. */
    LARGE_EVENTS(10_000_000, 100_000, 10_000_000_000L),
    /** Duration of each interval of retention: three in each round. */
    RETENTION_SECONDS(20, 1, Limits.SECONDS_MAX),
    /** Duration of the burst of retention. */
    BURST_SECONDS(60, 1, Limits.SECONDS_MAX),
    /** Events per second of the burst, 100 per call. */
    BURST_RATE(100_000, 100, Limits.RATE_MAX),
    /** Duration of compaction. */
    COMPACTION_SECONDS(1_200, 1, Limits.SECONDS_MAX),
    /** Events per second of compaction, 10 per call. */
    COMPACTION_RATE(20_000, 10, Limits.RATE_MAX),
    /** Duration of each interval of cost and fanout. */
    COST_SECONDS(10, 1, Limits.SECONDS_MAX),
    /** Duration of each of the three rates of tail. Each event is kept in memory. */
    TAIL_SECONDS(60, 1, 600),
    /** Pending events of scheduled. */
    SCHEDULED_EVENTS(1_000_000, 1, 100_000_000),
    /** For how long 1,000 events per second are due in scheduled. */
    SCHEDULED_SECONDS(30, 1, Limits.SECONDS_MAX);

    /** Limits of several numbers. */
    private static final class Limits {
        private static final int SECONDS_MAX = 86_400;
        private static final int RATE_MAX = 1_000_000;
    }

    private final double defaultValue;
    private final double min;
    private final double max;

    LimitsNumber(double defaultValue, double min, double max) {
        this.defaultValue = defaultValue;
        this.min = min;
        this.max = max;
    }

    /** Returns the name in workload files and results. */
    public String field() {
        return name().toLowerCase(Locale.ROOT);
    }

    double defaultValue() {
        return defaultValue;
    }

    double min() {
        return min;
    }

    double max() {
        return max;
    }

    /** Returns whether the number is an integer. */
    boolean isWhole() {
        return this != ROUND_SECONDS;
    }
}
