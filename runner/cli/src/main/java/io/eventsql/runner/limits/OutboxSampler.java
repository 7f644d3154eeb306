package io.eventsql.runner.limits;

import io.eventsql.OutboxBacklog;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Samples the size and the backlog of the outbox at a fixed interval. */
final class OutboxSampler {
    private static final int SAMPLES_PER_TENTH = 10;

    private final LimitsContext context;
    private final Duration time;
    /** A tenth of its own for each sample. Guarded by itself. */
    private final List<Tenth> samples = new ArrayList<>();

    /** @param time the total sampling time */
    OutboxSampler(LimitsContext context, Duration time) {
        this.context = context;
        this.time = time;
    }

    /**
     * The maximum values in a tenth of the time.
     *
     * @param bytesMax the size of the outbox tables, including indexes
     * @param eventsMax the committed events not yet relayed
     */
    record Tenth(long bytesMax, long eventsMax) {
        private Tenth max(Tenth other) {
            return new Tenth(Math.max(bytesMax, other.bytesMax), Math.max(eventsMax, other.eventsMax));
        }
    }

    /**
     * Samples while a load runs.
     *
     * @return the samples by tenth of the time
     * @throws IllegalStateException if a sample failed
     */
    List<Tenth> sampleDuring(Runnable load) {
        long period = time.toNanos() / (TenthsMeter.TENTHS * SAMPLES_PER_TENTH);
        try (ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor()) {
            ScheduledFuture<?> sampling = timer.scheduleWithFixedDelay(this::sample, 0, period, TimeUnit.NANOSECONDS);
            try {
                load.run();
            } finally {
                sampling.cancel(false);
            }
            if (sampling.state() == ScheduledFuture.State.FAILED) {
                throw new IllegalStateException("Sampling the outbox failed", sampling.exceptionNow());
            }
        }
        return tenths();
    }

    private void sample() {
        try {
            long bytes = context.query(
                    "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('eventsql.outbox')");
            long events = context.eventSql().outbox().backlogs().stream()
                    .mapToLong(OutboxBacklog::events)
                    .sum();
            synchronized (samples) {
                samples.add(new Tenth(bytes, events));
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private List<Tenth> tenths() {
        synchronized (samples) {
            List<Tenth> tenths = new ArrayList<>();
            for (int i = 0; i < TenthsMeter.TENTHS; i++) {
                tenths.add(samples
                        .subList(samples.size() * i / TenthsMeter.TENTHS, samples.size() * (i + 1) / TenthsMeter.TENTHS)
                        .stream()
                        .reduce(new Tenth(0, 0), Tenth::max));
            }
            return tenths;
        }
    }
}
