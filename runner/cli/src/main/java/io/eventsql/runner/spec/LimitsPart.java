package io.eventsql.runner.spec;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The parts of a limits run, in the order in which they run. */
public enum LimitsPart {
    /** The same events appended by binary COPY and by the library. */
    APPEND,
    /** Reads of a partition in pages of 10 to 10,000 events, before and after ANALYZE, and by a consumer. */
    READ,
    /** Publish latency at a steady rate, with and without a long-running snapshot. */
    SNAPSHOT,
    /** A handler that takes 10 ms on one partition, sequentially and by key in parallel. */
    HANDLERS,
    /** Publishing inside Spring transactions, compared to inserting a plain row; relay rate. */
    TRANSACTIONS,
    /** Transactional and direct publishing at once, with and without a long-running snapshot. */
    OUTBOX,
    /** Publishing and consuming with many stored events, compared to few. */
    LARGE,
    /** Publishing while segments expire, with idle readers; a burst into small segments. */
    RETENTION,
    /** Updates of the same 100 keys in a compacted stream. */
    COMPACTION,
    /** CPU, transactions and WAL per event, with and without a checkpoint. */
    COST,
    /** The same for one and for ten consumers of a stream. */
    FANOUT,
    /** What happens while the slowest percent of events is on its way. */
    TAIL,
    /** Publishing with many scheduled events and with none; how late due events are. */
    SCHEDULED;

    /** Returns the name in workload files and in results. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Returns all names. */
    public static List<String> labels() {
        return Arrays.stream(values()).map(LimitsPart::label).toList();
    }
}
