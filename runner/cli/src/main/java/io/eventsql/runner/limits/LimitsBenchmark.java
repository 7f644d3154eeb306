package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonValue;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The benchmarks of a limits run. */
public enum LimitsBenchmark {
    /** Appends by binary COPY and by the library. */
    APPEND,
    /** Reads in pages of several sizes, before and after ANALYZE. */
    READ,
    /** Publish latency with and without a long-running snapshot. */
    SNAPSHOT,
    /** A slow handler, sequentially and by key in parallel. */
    HANDLERS,
    /** Publishing inside transactions compared to inserting a plain row, and the rate of the relay. */
    TRANSACTIONS,
    /** Publishing inside transactions, with and without a long-running snapshot. */
    OUTBOX,
    /** A stream with many stored events compared with one that has few. */
    LARGE,
    /** Publishing while segments expire, with idle readers, and into segments that are full within a second. */
    RETENTION,
    /** Updates of a few keys in a compacted stream. */
    COMPACTION,
    /** CPU time, transactions and WAL per event. */
    COST,
    /** The database's work for one and for ten consumers of a stream. */
    FANOUT,
    /** What happens while the slowest percent of events is on its way. */
    TAIL,
    /** Publishing with many scheduled events and with none, and how late due ones are. */
    SCHEDULED;

    /** The benchmarks that run by default; the others take long, or much disk space. */
    public static final List<LimitsBenchmark> DEFAULTS =
            List.of(APPEND, READ, SNAPSHOT, HANDLERS, TRANSACTIONS, OUTBOX);

    /** Returns the name on the command line and in the result. */
    @JsonValue
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Returns the benchmark with the given name. */
    public static Optional<LimitsBenchmark> of(String label) {
        return Arrays.stream(values())
                .filter(benchmark -> benchmark.label().equals(label))
                .findFirst();
    }

    /** Returns all names in the order in which the benchmarks run. */
    public static List<String> labels() {
        return Arrays.stream(values()).map(LimitsBenchmark::label).toList();
    }
}
