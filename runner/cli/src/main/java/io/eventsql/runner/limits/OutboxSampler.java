package io.eventsql.runner.limits;

import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import io.eventsql.Settings;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** Samples the size and the backlog of the outbox at a fixed interval. */
final class OutboxSampler {
    private static final int SAMPLES_PER_TENTH = 10;

    private final DataSource dataSource;
    private final Outbox outbox;
    private final Duration time;
    private final List<Sample> samples = new ArrayList<>();

    /** @param time the total sampling time */
    OutboxSampler(DataSource dataSource, Outbox outbox, Duration time) {
        this.dataSource = dataSource;
        this.outbox = outbox;
        this.time = time;
    }

    /** @param bytes the size of the outbox tables, including indexes */
    private record Sample(long bytes, long events) {}

    /**
     * The maximum values in a tenth of the time.
     *
     * @param outboxBytesMax the size of the outbox tables, including indexes
     * @param outboxEventsMax the committed events not yet relayed
     */
    record Tenth(long outboxBytesMax, long outboxEventsMax) {}

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
        String sql = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('" + Settings.DEFAULT_SCHEMA
                + ".outbox')";
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            long bytes = row.getLong(1);
            long events =
                    outbox.backlogs().stream().mapToLong(OutboxBacklog::events).sum();
            synchronized (samples) {
                samples.add(new Sample(bytes, events));
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private List<Tenth> tenths() {
        synchronized (samples) {
            List<Tenth> tenths = new ArrayList<>();
            for (int i = 0; i < TenthsMeter.TENTHS; i++) {
                List<Sample> ofTenth = samples.subList(
                        samples.size() * i / TenthsMeter.TENTHS, samples.size() * (i + 1) / TenthsMeter.TENTHS);
                tenths.add(new Tenth(
                        ofTenth.stream().mapToLong(Sample::bytes).max().orElse(0),
                        ofTenth.stream().mapToLong(Sample::events).max().orElse(0)));
            }
            return tenths;
        }
    }
}
