package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.workload.KeyShare;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;

/**
 * Measures the rate of a handler that takes 10 ms on one partition, sequentially and by key in parallel. All events are
 * published before the handler starts. The handler only sleeps, like one that calls another service.
 */
final class HandlersBenchmark {
    private static final Duration HANDLER_TIME = Duration.ofMillis(10);
    private static final int KEYS = 1_000;
    private static final int PUBLISH_CALL_EVENTS = 1_000;

    /** The target of handling by key: the rate that one partition sustains with each key in order. */
    private static final long BAR_EVENTS_PER_SECOND = 2_000;

    private static final Duration POLL = Duration.ofMillis(20);

    /** Longer than a lease, after which no progress can be expected. */
    private static final Duration NO_PROGRESS = Duration.ofSeconds(30);

    private final LimitsContext context;
    private final PartRecorder part;

    HandlersBenchmark(LimitsContext context) {
        this.context = context;
        this.part = context.recorder(LimitsPart.HANDLERS, "a slow handler on one partition, each key in order")
                .add("handler_ms", Figure.of(HANDLER_TIME.toMillis(), "ms"))
                .add("keys", Figure.of(KEYS));
    }

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        int concurrency = context.number(LimitsNumber.HANDLERS_CONCURRENCY);
        double sequential = run("sequential", "sequential", 1, context.number(LimitsNumber.HANDLERS_SEQUENTIAL_EVENTS));
        double parallel = run(
                "parallel",
                concurrency + " keys in parallel",
                concurrency,
                context.number(LimitsNumber.HANDLERS_EVENTS));
        return part.add("target_events_per_second", Figure.of(BAR_EVENTS_PER_SECOND, "events/s"))
                .add("speedup_by_key", Figure.of(Statistics.ratio(parallel, sequential)))
                .part();
    }

    /** Returns the rate in events/s. */
    private double run(String what, String row, int keyConcurrency, int events) throws SQLException {
        String stream = context.stream("handlers_" + what);
        context.eventSql().createStream(StreamSpec.of(stream).withPartitions(1));
        // One caller, because with two the order of a key would be undefined.
        PublishVariant.async(context.publishLoad(stream, PUBLISH_CALL_EVENTS, KeyShare.keysOf(0, KEYS)), 1)
                .publish(events);
        context.checkStopped();
        HandledEvents handled = new HandledEvents();
        ConsumerSpec consumer = ConsumerSpec.of(stream, "limits").withKeyConcurrency(keyConcurrency);
        Subscription subscription = context.eventSql().subscribe(consumer, event -> handle(event, handled));
        try {
            context.await(handled::handledOnce, events, NO_PROGRESS, POLL);
        } finally {
            subscription.close();
        }
        context.checkStopped();
        double perSecond = handled.addTo(part, row, events);
        context.show("Handlers, %s: %,d events, %,.0f events/s", row, events, perSecond);
        return perSecond;
    }

    private void handle(StoredEvent event, HandledEvents handled) throws InterruptedException {
        String key = Objects.requireNonNull(event.key());
        long number = BenchmarkEvent.decode(event.value()).number();
        handled.recordStart(key, number, context.clock().nanos());
        Thread.sleep(HANDLER_TIME);
        handled.recordEnd(key, context.clock().nanos());
    }
}
