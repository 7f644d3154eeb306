package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventHandler;
import io.eventsql.EventSql;
import io.eventsql.Subscription;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.PublishMeter;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * Publishes in the background until it is stopped, while consumers handle the events. As in separate processes, the
 * publisher and each member have an {@link EventSql} of their own; they share this process and its pool of connections.
 */
final class ConsumedLoad implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(5);
    private static final Duration NO_PROGRESS = Duration.ofSeconds(60);

    private final LimitsContext context;
    private final int consumers;
    private final List<EventSql> members = new ArrayList<>();
    private final List<Subscription> subscriptions = new ArrayList<>();
    private final LongAdder handled = new LongAdder();
    private final PublishMeter meter = new PublishMeter();
    private final AtomicLong endNanos = new AtomicLong(Long.MAX_VALUE);
    private CompletableFuture<Long> sending = CompletableFuture.completedFuture(0L);

    /**
     * Starts the consumers.
     *
     * @param members the members of each consumer
     * @param handler receives each event, concurrently
     */
    ConsumedLoad(LimitsContext context, String stream, int members, int consumers, EventHandler handler) {
        this.context = context;
        this.consumers = consumers;
        try {
            for (int member = 0; member < members; member++) {
                EventSql eventSql = EventSql.builder(context.dataSource()).build();
                this.members.add(eventSql);
                for (int consumer = 0; consumer < consumers; consumer++) {
                    subscriptions.add(eventSql.subscribe(ConsumerSpec.of(stream, "limits" + consumer), event -> {
                        handler.handle(event);
                        handled.increment();
                    }));
                }
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Starts to publish. */
    ConsumedLoad publish(LoadGenerator load) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        LoadPhase phase = LoadPhase.until(false, anchor, anchor.nanos(), endNanos::get);
        sending = CompletableFuture.supplyAsync(
                () -> load.run(phase, meter),
                task -> Thread.ofPlatform().name("limits-load").start(task));
        return this;
    }

    /** Returns the acknowledged events so far. */
    long publishedEvents() {
        return meter.publishedEvents();
    }

    /** Returns the events handled so far, by all consumers. */
    long handledEvents() {
        return handled.sum();
    }

    /**
     * Stops publishing and waits until every consumer has handled every event.
     *
     * @throws IllegalStateException if an event failed, or was not handled exactly once by each consumer
     */
    void finish() throws SQLException {
        endNanos.set(context.clock().nanos());
        sending.join();
        context.checkStopped();
        long expected = meter.publishedEvents() * consumers;
        context.await(handled::sum, expected, NO_PROGRESS, POLL);
        if (meter.failedEvents() > 0 || handled.sum() != expected) {
            throw new IllegalStateException(meter.publishedEvents() + " events were published and "
                    + meter.failedEvents() + " failed; " + consumers + " consumers handled " + handled.sum());
        }
    }

    @Override
    public void close() {
        endNanos.set(Long.MIN_VALUE);
        sending.exceptionally(failure -> 0L).join();
        subscriptions.forEach(Subscription::close);
        members.forEach(EventSql::close);
    }
}
