package io.eventsql.runner.limits;

import io.eventsql.OutboxBacklog;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** Samples the size and the backlog of the outbox at a fixed interval. */
final class OutboxSampler {
    private static final int SAMPLES = 10;

    private final LimitsContext context;
    private final long periodNanos;

    /** @param time the usual time of a load, in which there are ten samples */
    OutboxSampler(LimitsContext context, Duration time) {
        this.context = context;
        this.periodNanos = time.toNanos() / SAMPLES;
    }

    /**
     * The maximum values of several samples.
     *
     * @param bytes the size of the outbox tables, including indexes
     * @param events the committed events not yet relayed
     */
    record Maximum(long bytes, long events) {
        private Maximum with(Maximum other) {
            return new Maximum(Math.max(bytes, other.bytes), Math.max(events, other.events));
        }
    }

    /**
     * Samples while a load runs.
     *
     * @throws IllegalStateException if a sample failed
     */
    Maximum sampleDuring(Runnable load) {
        AtomicReference<Maximum> maximum = new AtomicReference<>(new Maximum(0, 0));
        try (ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor()) {
            ScheduledFuture<?> sampling = timer.scheduleWithFixedDelay(
                    () -> maximum.accumulateAndGet(sample(), Maximum::with), 0, periodNanos, TimeUnit.NANOSECONDS);
            try {
                load.run();
            } finally {
                sampling.cancel(false);
            }
            if (sampling.state() == ScheduledFuture.State.FAILED) {
                throw new IllegalStateException("Sampling the outbox failed", sampling.exceptionNow());
            }
        }
        return maximum.get();
    }

    private Maximum sample() {
        try {
            long bytes = context.query(
                    "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('eventsql.outbox')");
            long events = context.eventSql().outbox().backlogs().stream()
                    .mapToLong(OutboxBacklog::events)
                    .sum();
            return new Maximum(bytes, events);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
