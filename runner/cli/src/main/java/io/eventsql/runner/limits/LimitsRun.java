package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** Measures the parts that are asked for, one after the other. After a stop signal, what is complete stays. */
public final class LimitsRun {
    private final LimitsBench bench;
    private final LimitsSettings settings;

    public LimitsRun(LimitsBench bench, LimitsSettings settings) {
        this.bench = bench;
        this.settings = settings;
    }

    /**
     * What was measured.
     *
     * @param append {@code null}: it was not, and likewise below
     */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    public record Measured(
            @Nullable AppendResult append,
            @Nullable ReadResult read,
            @Nullable SnapshotResult snapshot,
            @Nullable HandlersResult handlers,
            @Nullable TransactionsResult transactions,
            @Nullable OutboxResult outbox) {}

    /**
     * Measures.
     *
     * @throws SQLException if the database refuses something
     * @throws IllegalStateException if what is measured would not be what it is called, such as a table that was analyzed
     */
    public Measured measure() throws SQLException {
        AppendResult append = null;
        ReadResult read = null;
        SnapshotResult snapshot = null;
        HandlersResult handlers = null;
        TransactionsResult transactions = null;
        OutboxResult outbox = null;
        try {
            if (settings.parts().contains(LimitsPart.APPEND)) {
                append = new AppendLimit(bench, settings.rounds()).measure();
            }
            if (settings.parts().contains(LimitsPart.READ)) {
                read = new PageSizes(bench, settings.rounds(), settings.readEvents()).measure();
            }
            if (settings.parts().contains(LimitsPart.SNAPSHOT)) {
                snapshot = new OldSnapshot(bench, settings.snapshot()).measure();
            }
            if (settings.parts().contains(LimitsPart.HANDLERS)) {
                handlers = new SlowHandlers(bench, settings.handlers()).measure();
            }
            if (settings.parts().contains(LimitsPart.TRANSACTIONS)) {
                transactions = new TransactionsLimit(bench, settings.rounds()).measure();
            }
            if (settings.parts().contains(LimitsPart.OUTBOX)) {
                outbox = new OutboxGrowth(bench, settings.outbox()).measure();
            }
        } catch (StoppedException e) {
            bench.progress().println("Stopped; the part that was being measured is left out");
        }
        return new Measured(append, read, snapshot, handlers, transactions, outbox);
    }
}
