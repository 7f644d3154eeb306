package io.eventsql.runner.limits;

import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** Measures the selected parts one after the other. */
public final class LimitsParts {
    private LimitsParts() {}

    /**
     * Measures the parts. A stop signal discards only the part in progress.
     *
     * @throws SQLException if a statement fails
     * @throws IllegalStateException if a precondition is violated, such as a table that was analyzed unexpectedly
     */
    public static List<ResultPart> measure(LimitsContext context) throws SQLException {
        List<ResultPart> measured = new ArrayList<>();
        try {
            for (LimitsPart part : LimitsPart.values()) {
                if (context.spec().parts().contains(part.label())) {
                    measured.add(measure(part, context));
                }
            }
        } catch (RunStoppedException e) {
            context.show("Stopped; discarding the part in progress");
        }
        return measured;
    }

    private static ResultPart measure(LimitsPart part, LimitsContext context) throws SQLException {
        return switch (part) {
            case APPEND -> new AppendBenchmark(context).measure();
            case READ -> new ReadBenchmark(context).measure();
            case SNAPSHOT -> new SnapshotBenchmark(context).measure();
            case HANDLERS -> new HandlersBenchmark(context).measure();
            case TRANSACTIONS -> new TransactionsBenchmark(context).measure();
            case OUTBOX -> new OutboxBenchmark(context).measure();
            case LARGE -> new LargeStreamBenchmark(context).measure();
            case RETENTION -> new RetentionBenchmark(context).measure();
            case COMPACTION -> new CompactionBenchmark(context).measure();
            case COST -> CostBenchmark.ofEvents(context).measure();
            case FANOUT -> CostBenchmark.ofConsumers(context).measure();
            case TAIL -> new TailBenchmark(context).measure();
            case SCHEDULED -> new ScheduledBenchmark(context).measure();
        };
    }
}
