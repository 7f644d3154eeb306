package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.workload.KeyShare;
import java.time.Duration;
import java.util.Locale;
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

    private static final long POLL_NANOS = Duration.ofMillis(20).toNanos();

    /** Longer than a lease, after which no progress can be expected. */
    private static final long NO_PROGRESS_NANOS = Duration.ofSeconds(30).toNanos();

    private final LimitsContext context;
    private final LimitsSettings.Handlers settings;

    HandlersBenchmark(LimitsContext context, LimitsSettings.Handlers settings) {
        this.context = context;
        this.settings = settings;
    }

    /** @throws RunStoppedException after a stop signal */
    HandlersResult measure() {
        return HandlersResult.of(
                HANDLER_TIME.toMillis(),
                KEYS,
                BAR_EVENTS_PER_SECOND,
                run("handlers_sequential", 1, settings.sequentialEvents()),
                run("handlers_parallel", settings.keyConcurrency(), settings.events()));
    }

    private HandlersResult.HandlerRun run(String what, int keyConcurrency, int events) {
        String stream = context.stream(what);
        context.eventSql().createStream(StreamSpec.of(stream).withPartitions(1));
        // One caller, because with two the order of a key would be undefined.
        PublishVariant.async(context.publishLoad(stream, PUBLISH_CALL_EVENTS, KeyShare.keysOf(0, KEYS)), 1)
                .publish(events);
        context.checkStopped();
        HandledEvents handled = new HandledEvents();
        ConsumerSpec consumer = ConsumerSpec.of(stream, "limits").withKeyConcurrency(keyConcurrency);
        Subscription subscription = context.eventSql().subscribe(consumer, event -> handle(event, handled));
        try {
            await(handled, events);
        } finally {
            subscription.close();
        }
        context.checkStopped();
        HandlersResult.HandlerRun result = handled.result(keyConcurrency, events);
        context.progress()
                .printf(
                        Locale.ROOT,
                        "Handlers, %d key%s in parallel: %,d events, %,.0f events/s%n",
                        keyConcurrency,
                        keyConcurrency == 1 ? "" : "s",
                        events,
                        result.eventsPerSecond());
        return result;
    }

    private void handle(StoredEvent event, HandledEvents handled) throws InterruptedException {
        String key = Objects.requireNonNull(event.key());
        long number = BenchmarkEvent.decode(event.value()).number();
        handled.recordStart(key, number, context.clock().nanos());
        Thread.sleep(HANDLER_TIME);
        handled.recordEnd(key, context.clock().nanos());
    }

    /** Waits until all events are handled, a stop signal is raised, or no progress is made. */
    private void await(HandledEvents handled, int events) {
        long before = -1;
        long progressed = context.clock().nanos();
        while (!handled.isDone(events) && !context.stop().isRaised()) {
            long now = context.clock().nanos();
            long count = handled.handled();
            if (count != before) {
                before = count;
                progressed = now;
            } else if (now - progressed > NO_PROGRESS_NANOS) {
                context.progress().println("Handlers: no progress for 30 s; aborting");
                return;
            }
            context.clock().parkNanos(POLL_NANOS);
        }
    }
}
