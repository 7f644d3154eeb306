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
 * How fast a handler that takes 10 ms goes through one partition: one event after the other, and several keys at the same
 * time. The events are there before it begins, and it does nothing but wait, as one does that calls another service.
 */
final class HandlersBenchmark {
    private static final Duration HANDLER_TIME = Duration.ofMillis(10);
    private static final int KEYS = 1_000;
    private static final int PUBLISH_CALL_EVENTS = 1_000;

    /** What handling by key is for: one partition keeps up with this, and each key stays in order. */
    private static final long BAR_EVENTS_PER_SECOND = 2_000;

    private static final long POLL_NANOS = Duration.ofMillis(20).toNanos();

    /** Longer than a lease: then nothing will be handled any more. */
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
        // One caller: with two, the order of a key would be nobody's.
        PublishVariant.async(context.publishing(stream, PUBLISH_CALL_EVENTS, KeyShare.keysOf(0, KEYS)), 1)
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
                        "Handlers, %d key%s at a time: %,d events, %,.0f events/s%n",
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

    /** Returns when all are handled, after a stop signal, and when nothing is handled any more. */
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
                context.progress().println("Handlers: nothing is handled any more");
                return;
            }
            context.clock().parkNanos(POLL_NANOS);
        }
    }
}
