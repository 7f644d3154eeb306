package io.eventsql.spring.observation;

import io.eventsql.BufferState;
import io.eventsql.EventSql;
import io.eventsql.OutboxBacklog;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

/** How full the buffers are, and what waits in the outboxes. Thread-safe. */
public final class EventSqlGauges implements MeterBinder {
    private final EventSql eventSql;
    private final Duration outboxInterval;

    /** @param outboxInterval how often an outbox is read at most, by a scrape */
    public EventSqlGauges(EventSql eventSql, Duration outboxInterval) {
        this.eventSql = eventSql;
        this.outboxInterval = outboxInterval;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (BufferState buffer : eventSql.buffers()) {
            bindBuffer(registry, buffer.shard());
        }
        for (String outbox : eventSql.outbox().names()) {
            bindOutbox(registry, outbox);
        }
    }

    private void bindBuffer(MeterRegistry registry, int shard) {
        gauge(
                registry,
                "eventsql.buffer",
                "bytes",
                "Events that wait for the shard or are on their way",
                shard,
                b -> b.bytes());
        gauge(registry, "eventsql.buffer.limit", "bytes", "What fits into the buffer", shard, b -> b.limitBytes());
        gauge(
                registry,
                "eventsql.buffer.waiting",
                "calls",
                "Publish calls no batch has taken yet",
                shard,
                b -> b.waitingCalls());
        gauge(
                registry,
                "eventsql.buffer.blocked",
                "threads",
                "Publishers that wait for room",
                shard,
                b -> b.blockedCallers());
    }

    private void gauge(
            MeterRegistry registry,
            String name,
            String unit,
            String description,
            int shard,
            ToDoubleFunction<BufferState> number) {
        Gauge.builder(name, eventSql, e -> number.applyAsDouble(e.buffers().get(shard)))
                .description(description)
                .baseUnit(unit)
                .tag("shard", Integer.toString(shard))
                .register(registry);
    }

    private void bindOutbox(MeterRegistry registry, String name) {
        OutboxReadings readings = new OutboxReadings(eventSql.outbox(), name, outboxInterval, System::nanoTime);
        Tags tags = Tags.of("outbox", name);
        Gauge.builder("eventsql.outbox.backlog", readings, r -> r.get(OutboxBacklog::events))
                .description("Committed events that are not in their streams yet, counted up to "
                        + OutboxBacklog.COUNTED_MAX)
                .baseUnit("events")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        Gauge.builder("eventsql.outbox.refused", readings, r -> r.get(OutboxBacklog::refusedEvents))
                .description("Events that can never be appended")
                .baseUnit("events")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        TimeGauge.builder(
                        "eventsql.outbox.age",
                        readings,
                        TimeUnit.MILLISECONDS,
                        r -> r.get(backlog -> backlog.oldestAge().toMillis()))
                .description("How long the oldest event has waited")
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }
}
