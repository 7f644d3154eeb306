package io.eventsql.runner.limits;

import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** Measures the selected parts one after the other. */
public final class LimitsParts {
    private LimitsParts() {}

    /** Measures the parts, see {@link LimitsBenchmark#measure}. A stop signal discards only the part in progress. */
    public static List<ResultPart> measure(LimitsContext context) throws SQLException {
        List<ResultPart> measured = new ArrayList<>();
        try {
            for (LimitsPart part : LimitsPart.values()) {
                if (context.spec().parts().contains(part.label())) {
                    LimitsBenchmark benchmark = benchmark(part, context);
                    benchmark.measure();
                    measured.add(benchmark.part.part());
                }
            }
        } catch (RunStoppedException e) {
            context.show("Stopped; discarding the part in progress");
        }
        return measured;
    }

    private static LimitsBenchmark benchmark(LimitsPart part, LimitsContext context) {
        return switch (part) {
            case APPEND -> new AppendBenchmark(context);
            case READ -> new ReadBenchmark(context);
            case SNAPSHOT -> new SnapshotBenchmark(context);
            case HANDLERS -> new HandlersBenchmark(context);
            case TRANSACTIONS -> new TransactionsBenchmark(context);
            case OUTBOX -> new OutboxBenchmark(context);
            case LARGE -> new LargeStreamBenchmark(context);
            case RETENTION -> new RetentionBenchmark(context);
            case COMPACTION -> new CompactionBenchmark(context);
            case COST -> CostBenchmark.ofEvents(context);
            case FANOUT -> CostBenchmark.ofConsumers(context);
            case TAIL -> new TailBenchmark(context);
            case SCHEDULED -> new ScheduledBenchmark(context);
        };
    }
}
