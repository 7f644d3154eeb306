package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** Runs the selected benchmarks one after the other. A stop signal discards only the benchmark in progress. */
public final class LimitsRun {
    private final LimitsContext context;
    private final LimitsSettings settings;

    public LimitsRun(LimitsContext context, LimitsSettings settings) {
        this.context = context;
        this.settings = settings;
    }

    /**
     * The results of the benchmarks.
     *
     * @param append {@code null} if it did not run, likewise below
     */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    public record Measurements(
            @Nullable AppendResult append,
            @Nullable ReadResult read,
            @Nullable SnapshotResult snapshot,
            @Nullable HandlersResult handlers,
            @Nullable TransactionsResult transactions,
            @Nullable OutboxResult outbox,
            @Nullable LargeStreamResult large,
            @Nullable RetentionResult retention,
            @Nullable CompactionResult compaction,
            @Nullable CostResult cost,
            @Nullable CostResult fanout,
            @Nullable TailResult tail,
            @Nullable ScheduledResult scheduled) {}

    /**
     * Runs the benchmarks.
     *
     * @throws SQLException if a statement fails
     * @throws IllegalStateException if a precondition is violated, such as a table that was analyzed unexpectedly
     */
    public Measurements measure() throws SQLException {
        AppendResult append = null;
        ReadResult read = null;
        SnapshotResult snapshot = null;
        HandlersResult handlers = null;
        TransactionsResult transactions = null;
        OutboxResult outbox = null;
        LargeStreamResult large = null;
        RetentionResult retention = null;
        CompactionResult compaction = null;
        CostResult cost = null;
        CostResult fanout = null;
        TailResult tail = null;
        ScheduledResult scheduled = null;
        try {
            if (settings.benchmarks().contains(LimitsBenchmark.APPEND)) {
                append = new AppendBenchmark(context, settings.rounds()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.READ)) {
                read = new ReadBenchmark(context, settings.rounds(), settings.readEvents()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.SNAPSHOT)) {
                snapshot = new SnapshotBenchmark(context, settings.snapshot()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.HANDLERS)) {
                handlers = new HandlersBenchmark(context, settings.handlers()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.TRANSACTIONS)) {
                transactions = new TransactionsBenchmark(context, settings.rounds()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.OUTBOX)) {
                outbox = new OutboxBenchmark(context, settings.outbox()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.LARGE)) {
                large = new LargeStreamBenchmark(context, settings.rounds(), settings.largeEvents()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.RETENTION)) {
                retention = new RetentionBenchmark(context, settings.retention()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.COMPACTION)) {
                compaction = new CompactionBenchmark(context, settings.compaction()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.COST)) {
                cost = new CostBenchmark(context, settings.cost()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.FANOUT)) {
                fanout = new CostBenchmark(context, settings.cost()).measureFanout();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.TAIL)) {
                tail = new TailBenchmark(context, settings.tail()).measure();
            }
            if (settings.benchmarks().contains(LimitsBenchmark.SCHEDULED)) {
                scheduled = new ScheduledBenchmark(context, settings).measure();
            }
        } catch (RunStoppedException e) {
            context.progress().println("Stopped; discarding the benchmark in progress");
        }
        return new Measurements(
                append,
                read,
                snapshot,
                handlers,
                transactions,
                outbox,
                large,
                retention,
                compaction,
                cost,
                fanout,
                tail,
                scheduled);
    }
}
