package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.time.Duration;

/**
 * Measures the rate of a handler that takes 10 ms on one partition, sequentially and by key in parallel. The
 * events are published at once, much faster than they are handled. The handler only sleeps, like one that calls another
 * service.
 */
final class HandlersBenchmark extends LimitsBenchmark {
    private static final Duration HANDLER_TIME = Duration.ofMillis(10);
    private static final int KEYS = 1_000;
    private static final int PUBLISH_CALL_EVENTS = 1_000;

    /** The target of handling by key: the rate that one partition sustains with each key in order. */
    private static final long BAR_EVENTS_PER_SECOND = 2_000;

    /** More than a lease, and what handlers take besides their sleep. */
    private static final int SPARE_SECONDS = 120;

    HandlersBenchmark(LimitsContext context) {
        super(context, LimitsPart.HANDLERS, "a slow handler on one partition, each key in order");
    }

    @Override
    void measure() throws SQLException {
        part.add("handler_ms", Figure.of(HANDLER_TIME.toMillis(), "ms")).add("keys", Figure.of(KEYS));
        int concurrency = context.number(LimitsNumber.HANDLERS_CONCURRENCY);
        double sequential = run("sequential", "sequential", 1, context.number(LimitsNumber.HANDLERS_SEQUENTIAL_EVENTS));
        double parallel = run(
                "parallel",
                concurrency + " keys in parallel",
                concurrency,
                context.number(LimitsNumber.HANDLERS_EVENTS));
        part.add("target_events_per_second", Figure.of(BAR_EVENTS_PER_SECOND, "events/s"))
                .add("speedup_by_key", Figure.of(Statistics.ratio(parallel, sequential)));
    }

    /** Returns the rate in events/s. */
    private double run(String what, String row, int keyConcurrency, int events) throws SQLException {
        LoadedStream loaded = LoadedStream.ofLibrary()
                .withPartitions(1)
                .withKeys(KEYS)
                .withConsumers(1)
                .withTimeoutSeconds(
                        (int) (HANDLER_TIME.multipliedBy(events).toSeconds() / keyConcurrency) + SPARE_SECONDS)
                .with("handler_ms", String.valueOf(HANDLER_TIME.toMillis()))
                .with("key_concurrency", String.valueOf(keyConcurrency));
        try (StreamLoad load = StreamLoad.create(context, context.stream("handlers_" + what), loaded)) {
            PhaseLoad published = load.send(PhaseSpec.ofCallers(row, 1, true, PUBLISH_CALL_EVENTS), events);
            load.drain().forEach(problem -> part.addProblem(row + ": " + problem));
            ConsumerCounts handled = load.consumerCounts().getFirst();
            double seconds = (published.lastDeliveredAtMicros() - published.startedAtMicros()) / 1e6;
            double perSecond = Statistics.ratio((double) handled.eventsSeen(), seconds);
            part.add("handlers", row, "events", Figure.of(events))
                    .add("handlers", row, "events_per_second", Figure.of(perSecond, "events/s"))
                    .add("handlers", row, "lost", Figure.of(handled.eventsLost()))
                    .add("handlers", row, "duplicated", Figure.of(handled.eventsDuplicated()))
                    .add("handlers", row, "out_of_order", Figure.of(handled.orderViolations()));
            context.show("Handlers, %s: %,d events, %,.0f events/s", row, events, perSecond);
            return perSecond;
        }
    }
}
