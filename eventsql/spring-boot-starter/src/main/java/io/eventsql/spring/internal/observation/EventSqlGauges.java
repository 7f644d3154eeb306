package io.eventsql.spring.internal.observation;

import io.eventsql.BufferState;
import io.eventsql.CompactionStatus;
import io.eventsql.EventSql;
import io.eventsql.OutboxBacklog;
import io.eventsql.ReplicaStatus;
import io.eventsql.RetentionStatus;
import io.eventsql.ScheduleBacklog;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

/** Gauges of the publish buffers, the outboxes and the consumers, and counters that the library keeps. Thread-safe. */
public final class EventSqlGauges implements MeterBinder, AutoCloseable {
    private static final Duration RETENTION_INTERVAL = Duration.ofSeconds(30);

    private final EventSql eventSql;
    private final Duration outboxInterval;
    private final Duration consumerInterval;
    private final int consumersMax;
    private final ScheduledExecutorService timer;

    /**
     * @param outboxInterval shortest time between two reads of an outbox
     * @param consumerInterval time between two reads of a shard's consumers
     * @param consumersMax maximum number of consumers of a shard that are read; 0: none
     */
    public EventSqlGauges(EventSql eventSql, Duration outboxInterval, Duration consumerInterval, int consumersMax) {
        this.eventSql = eventSql;
        this.outboxInterval = outboxInterval;
        this.consumerInterval = consumerInterval;
        this.consumersMax = consumersMax;
        this.timer = Executors.newSingleThreadScheduledExecutor(
                Thread.ofPlatform().daemon().name("eventsql-meters").factory());
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (BufferState buffer : eventSql.buffers()) {
            bindBuffer(registry, buffer);
            bindRetention(registry, buffer);
            bindCompaction(registry, buffer);
            if (consumersMax > 0) {
                ConsumerGauges consumers = ConsumerGauges.bind(
                        registry, eventSql, buffer.shard(), buffer.name(), consumerInterval, consumersMax);
                long intervalMs = consumerInterval.toMillis();
                timer.scheduleWithFixedDelay(consumers, intervalMs, intervalMs, TimeUnit.MILLISECONDS)
                        .state();
            }
        }
        eventSql.replicas().forEach(replica -> bindReplica(registry, replica));
        bindThreads(registry);
        for (String outbox : eventSql.outbox().names()) {
            bindOutbox(registry, outbox);
            bindScheduled(registry, outbox);
        }
    }

    private void bindReplica(MeterRegistry registry, ReplicaStatus replica) {
        Tags tags = Tags.of("shard", replica.name());
        TimeGauge.builder(
                        "eventsql.replica.lag",
                        eventSql,
                        TimeUnit.MILLISECONDS,
                        e -> replica(e, replica.shard(), status -> {
                            Duration lag = status.lag();
                            return lag == null ? Double.NaN : lag.toMillis();
                        }))
                .description("How far the replica is behind the primary; not a number if it is not known")
                .tags(tags)
                .register(registry);
        Gauge.builder("eventsql.replica.used", eventSql, e -> replica(e, replica.shard(), s -> s.isUsed() ? 1 : 0))
                .description("1 if the replica is read from; 0 if its readers read from the primary")
                .tags(tags)
                .register(registry);
    }

    private static double replica(EventSql eventSql, int shard, ToDoubleFunction<ReplicaStatus> number) {
        return eventSql.replicas().stream()
                .filter(status -> status.shard() == shard)
                .mapToDouble(number)
                .findFirst()
                .orElse(Double.NaN);
    }

    private void bindThreads(MeterRegistry registry) {
        Gauge.builder(
                        "eventsql.threads.failing",
                        () -> EventSql.threadFailures().size())
                .description("Threads of the library that fail unexpectedly; their tasks are repeated")
                .baseUnit("threads")
                .register(registry);
        FunctionCounter.builder("eventsql.thread.failures", eventSql, any -> EventSql.threadFailureCount())
                .description("Unexpected failures of threads of the library, whose tasks are repeated")
                .register(registry);
        FunctionCounter.builder("eventsql.publish.callbacks.dropped", eventSql, EventSql::droppedPublishCallbacks)
                .description("Callbacks of publish listeners that were dropped because these were too slow")
                .register(registry);
    }

    private void bindBuffer(MeterRegistry registry, BufferState shard) {
        gauge(
                registry,
                "eventsql.buffer",
                "bytes",
                "Size of the events that wait to be appended or are being appended",
                shard,
                b -> b.bytes());
        gauge(registry, "eventsql.buffer.limit", "bytes", "Size of the buffer", shard, b -> b.limitBytes());
        gauge(
                registry,
                "eventsql.buffer.waiting",
                "calls",
                "Publish calls not yet part of a batch",
                shard,
                b -> b.waitingCalls());
        gauge(
                registry,
                "eventsql.buffer.blocked",
                "threads",
                "Publishers blocked because the buffer is full",
                shard,
                b -> b.blockedCallers());
    }

    private void gauge(
            MeterRegistry registry,
            String name,
            String unit,
            String description,
            BufferState shard,
            ToDoubleFunction<BufferState> number) {
        Gauge.builder(
                        name,
                        eventSql,
                        e -> e.buffers().stream()
                                .filter(buffer -> buffer.shard() == shard.shard())
                                .mapToDouble(number)
                                .findFirst()
                                .orElse(Double.NaN))
                .description(description)
                .baseUnit(unit)
                .tag("shard", shard.name())
                .register(registry);
    }

    /** Counted by the database for all processes: each reports the same values. */
    private void bindRetention(MeterRegistry registry, BufferState shard) {
        Readings<RetentionStatus> readings = new Readings<>(
                "retention " + shard.name(), RETENTION_INTERVAL, () -> eventSql.retentionStatus(shard.shard()));
        Tags tags = Tags.of("shard", shard.name());
        counter(
                registry,
                "eventsql.retention.expired.events",
                "events",
                "Events expired",
                readings,
                tags,
                s -> s.expiredEvents());
        counter(
                registry,
                "eventsql.retention.expired.size",
                "bytes",
                "Size of segments expired",
                readings,
                tags,
                s -> s.expiredBytes());
        gauge(
                registry,
                "eventsql.retention.blocked.segments",
                "segments",
                "Expired segments whose space is not returned yet",
                readings,
                tags,
                s -> s.segmentsToTruncate());
        gauge(
                registry,
                "eventsql.retention.empty.tables",
                "tables",
                "Empty tables of expired segments that are not dropped yet",
                readings,
                tags,
                s -> s.emptyTables());
    }

    /** Counted by the database for all processes: each reports the same values. */
    private void bindCompaction(MeterRegistry registry, BufferState shard) {
        Readings<CompactionStatus> readings = new Readings<>(
                "compaction " + shard.name(), RETENTION_INTERVAL, () -> eventSql.compactionStatus(shard.shard()));
        Tags tags = Tags.of("shard", shard.name());
        counter(
                registry,
                "eventsql.compaction.removed.events",
                "events",
                "Events removed by compaction",
                readings,
                tags,
                s -> s.removedEvents());
        counter(
                registry,
                "eventsql.compaction.returned.size",
                "bytes",
                "Space that compaction has returned",
                readings,
                tags,
                s -> s.returnedBytes());
        gauge(
                registry,
                "eventsql.compaction.dirty.segments",
                "segments",
                "Segments that have ended since the last compaction of their partition",
                readings,
                tags,
                s -> s.dirtySegments());
        gauge(
                registry,
                "eventsql.compaction.dirty.size",
                "bytes",
                "Size of the segments that have ended since the last compaction of their partition",
                readings,
                tags,
                s -> s.dirtyBytes());
        TimeGauge.builder(
                        "eventsql.compaction.pass.age",
                        readings,
                        TimeUnit.MILLISECONDS,
                        r -> r.get(s -> s.passAge().toMillis()))
                .description("Time since the compaction in progress has begun; 0 if there is none")
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    private static <T> void counter(
            MeterRegistry registry,
            String name,
            String unit,
            String description,
            Readings<T> readings,
            Tags tags,
            ToDoubleFunction<T> number) {
        FunctionCounter.builder(name, readings, r -> r.get(number))
                .description(description)
                .baseUnit(unit)
                .tags(tags)
                .register(registry);
    }

    private static <T> void gauge(
            MeterRegistry registry,
            String name,
            String unit,
            String description,
            Readings<T> readings,
            Tags tags,
            ToDoubleFunction<T> number) {
        Gauge.builder(name, readings, r -> r.get(number))
                .description(description)
                .baseUnit(unit)
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    private void bindOutbox(MeterRegistry registry, String name) {
        Readings<OutboxBacklog> readings = new Readings<>(
                "outbox " + name, outboxInterval, () -> eventSql.outbox().backlog(name));
        Tags tags = Tags.of("outbox", name);
        Gauge.builder("eventsql.outbox.backlog", readings, r -> r.get(OutboxBacklog::events))
                .description(
                        "Committed events that are not in their stream yet, counted up to " + OutboxBacklog.COUNTED_MAX)
                .baseUnit("events")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        Gauge.builder("eventsql.outbox.refused", readings, r -> r.get(OutboxBacklog::refusedEvents))
                .description("Events that the database has refused, kept until they are retried, counted up to "
                        + OutboxBacklog.COUNTED_MAX)
                .baseUnit("events")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        TimeGauge.builder(
                        "eventsql.outbox.age",
                        readings,
                        TimeUnit.MILLISECONDS,
                        r -> r.get(backlog -> backlog.oldestAge().toMillis()))
                .description("Age of the oldest event")
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    private void bindScheduled(MeterRegistry registry, String database) {
        Readings<ScheduleBacklog> readings = new Readings<>(
                "scheduled events " + database, outboxInterval, () -> eventSql.scheduleBacklog(database));
        Tags tags = Tags.of("outbox", database);
        gauge(
                registry,
                "eventsql.scheduled",
                "events",
                "Scheduled events, counted up to " + ScheduleBacklog.COUNTED_MAX + " and estimated above",
                readings,
                tags,
                b -> b.events());
        TimeGauge.builder(
                        "eventsql.scheduled.overdue",
                        readings,
                        TimeUnit.MILLISECONDS,
                        r -> r.get(backlog -> backlog.overdue().toMillis()))
                .description("Time for which the first scheduled event has been due; 0 if it is not due yet")
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    /** Stops reading the consumers. */
    @Override
    public void close() {
        timer.shutdownNow();
    }
}
