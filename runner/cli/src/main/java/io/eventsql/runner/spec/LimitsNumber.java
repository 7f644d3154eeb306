package io.eventsql.runner.spec;

import java.util.Locale;

/** The numbers that configure the parts of a limits run. */
public enum LimitsNumber {
    ROUNDS(3, 1, 1_000, "measured rounds of the parts with rounds, after one warm-up round"),
    ROUND_SECONDS(
            3, 0.05, 3_600, "duration of each measurement in a round of append, read, transactions, large, scheduled"),
    READ_EVENTS(300_000, 1_000, 1_000_000_000, "events in the partition to read"),
    SNAPSHOT_SECONDS(
            60,
            1,
            Limits.SECONDS_MAX,
            "duration of each of the four runs of snapshot: with and without, 1 and 10 partitions"),
    SNAPSHOT_RATE(2_000, 1, Limits.RATE_MAX, "events per second of snapshot and scheduled, one per call"),
    WARMUP_SECONDS(
            5,
            0,
            Limits.SECONDS_MAX,
            "warm-up before each run of snapshot, outbox, retention, cost, fanout and tail, not measured"),
    HANDLERS_EVENTS(20_000, 1, 10_000_000, "events handled by key in parallel"),
    HANDLERS_SEQUENTIAL_EVENTS(500, 1, 10_000_000, "events handled sequentially, at most 100 per second"),
    HANDLERS_CONCURRENCY(50, 1, 10_000, "keys handled in parallel, out of 1,000"),
    OUTBOX_SECONDS(
            60, 1, Limits.SECONDS_MAX, "duration of each of the two runs of outbox: with and without a snapshot"),
    OUTBOX_RATE(
            500, 1, Limits.RATE_MAX, "transactions per second of outbox, one event each, and as many direct publishes"),
    LARGE_EVENTS(10_000_000, 100_000, 10_000_000_000L, "events of the large stream; 100,000,000 need 30 GB"),
    RETENTION_SECONDS(20, 1, Limits.SECONDS_MAX, "duration of each interval of retention: three in each round"),
    BURST_SECONDS(60, 1, Limits.SECONDS_MAX, "duration of the burst of retention"),
    BURST_RATE(100_000, 100, Limits.RATE_MAX, "events per second of the burst, 100 per call"),
    COMPACTION_SECONDS(1_200, 1, Limits.SECONDS_MAX, "duration of compaction"),
    COMPACTION_RATE(20_000, 10, Limits.RATE_MAX, "events per second of compaction, 10 per call"),
    COST_SECONDS(10, 1, Limits.SECONDS_MAX, "duration of each interval of cost and fanout"),
    /** Each event is kept in memory. */
    TAIL_SECONDS(60, 1, 600, "duration of each of the three rates of tail"),
    SCHEDULED_EVENTS(1_000_000, 1, 100_000_000, "pending events of scheduled"),
    SCHEDULED_SECONDS(30, 1, Limits.SECONDS_MAX, "for how long 1,000 events per second are due in scheduled");

    /** Limits of several numbers. */
    private static final class Limits {
        private static final int SECONDS_MAX = 86_400;
        private static final int RATE_MAX = 1_000_000;
    }

    private final double defaultValue;
    private final double min;
    private final double max;
    private final String description;

    LimitsNumber(double defaultValue, double min, double max, String description) {
        this.defaultValue = defaultValue;
        this.min = min;
        this.max = max;
        this.description = description;
    }

    /** Returns the name in workload files and results. */
    public String field() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Returns the option of the command line. */
    public String option() {
        return "--" + field().replace('_', '-');
    }

    /** Returns what it configures. */
    public String description() {
        return description;
    }

    /** Returns the default, as on the command line. */
    public String defaultText() {
        return text(defaultValue);
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

    /**
     * Returns the number in the text of an option.
     *
     * @throws IllegalArgumentException if it is not a number in the range; the message has the range
     */
    public double parse(String text) {
        double value;
        try {
            value = isWhole() ? Long.parseLong(text) : Double.parseDouble(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("must be a number, but is '" + text + "'", e);
        }
        if (!(value >= min && value <= max)) {
            throw new IllegalArgumentException(
                    "must be between " + text(min) + " and " + text(max) + ", but is " + text);
        }
        return value;
    }

    private static String text(double value) {
        return value == Math.rint(value) ? String.valueOf((long) value) : String.valueOf(value);
    }
}
