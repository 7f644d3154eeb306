package io.eventsql.runner.spec;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The parts of a limits run, in the order in which they run. */
public enum LimitsPart {
    APPEND("the same events appended by binary COPY and by the library"),
    READ("reads of a partition in pages of 10 to 10,000 events, before and after ANALYZE, and by a consumer"),
    SNAPSHOT("publish latency at a steady rate, with and without a long-running snapshot"),
    HANDLERS("a handler that takes 10 ms on one partition, sequentially and by key in parallel"),
    TRANSACTIONS("publishing inside Spring transactions, compared to inserting a plain row; relay rate"),
    OUTBOX("transactional and direct publishing at once, with and without a long-running snapshot"),
    LARGE("publishing and consuming with many stored events, compared to few"),
    RETENTION("publishing while segments expire, with idle readers; a burst into small segments"),
    COMPACTION("updates of the same 100 keys in a compacted stream"),
    COST("CPU, transactions and WAL per event, with and without a checkpoint"),
    FANOUT("the same for one and for ten consumers of a stream"),
    TAIL("what happens while the slowest percent of events is on its way"),
    SCHEDULED("publishing with many scheduled events and with none; how late due events are");

    /** The parts that run by default. The others take long, or much disk space. */
    public static final List<LimitsPart> DEFAULTS = List.of(APPEND, READ, SNAPSHOT, HANDLERS, TRANSACTIONS, OUTBOX);

    private final String description;

    LimitsPart(String description) {
        this.description = description;
    }

    /** Returns what the part measures. */
    public String description() {
        return description + (DEFAULTS.contains(this) ? "" : "; not by default");
    }

    /** Returns the name on the command line, in workload files and in results. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Returns the part with the given name. */
    public static Optional<LimitsPart> of(String label) {
        return Arrays.stream(values())
                .filter(part -> part.label().equals(label))
                .findFirst();
    }

    /** Returns all names. */
    public static List<String> labels() {
        return Arrays.stream(values()).map(LimitsPart::label).toList();
    }
}
