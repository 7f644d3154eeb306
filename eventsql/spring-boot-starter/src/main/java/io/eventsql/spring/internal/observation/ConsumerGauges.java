package io.eventsql.spring.internal.observation;

import io.eventsql.ConsumerSummary;
import io.eventsql.EventSql;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.MultiGauge.Row;
import io.micrometer.core.instrument.Tags;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gauges of all consumers of one shard, as its database contains them: also of those without a member in any process. Of all
 * processes, one at a time has them, so that sums over processes are right ({@link EventSql#reportConsumers}). A process
 * whose meters nothing reads does not report, so that it does not hide the values. Thread-safe.
 */
final class ConsumerGauges implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(ConsumerGauges.class);
    private static final String EVENTS = "events";
    private static final String PARTITIONS = "partitions";
    /** Number of intervals that the lease of the reporting process lasts. */
    private static final int INTERVALS_PER_LEASE = 3;
    /** The time for which a process reports after its meters were last read: longer than the interval of any scrape. */
    private static final long UNREAD_NANOS_MAX = Duration.ofMinutes(10).toNanos();
    /**
     * The time for which removed gauges stay away: longer than a scrape takes. Micrometer's registry for Prometheus iterates over
     * a concurrent map, so a scrape may find a gauge that is removed and added again twice, and fails.
     */
    private static final long REMOVED_NANOS_MIN = Duration.ofSeconds(1).toNanos();

    private final EventSql eventSql;
    private final int shard;
    private final String shardName;
    private final Duration interval;
    private final int consumersMax;
    private final List<Measure> measures;
    private final AtomicBoolean reading = new AtomicBoolean();
    private final AtomicBoolean exceeded = new AtomicBoolean();
    private final AtomicBoolean failing = new AtomicBoolean();

    private volatile boolean read;
    private volatile long readAt;
    private volatile Report report = Report.OF_ANOTHER_PROCESS;
    /** When gauges of this process were removed, because another process was about to report. */
    private long removedAt = System.nanoTime() - REMOVED_NANOS_MIN;

    private record Consumer(String stream, String name) {}

    private record Measure(MultiGauge gauges, ToDoubleFunction<ConsumerSummary> number) {}

    /**
     * What this process reports.
     *
     * @param validUntil when another process may report, as {@link System#nanoTime()}
     */
    private record Report(boolean own, Map<Consumer, ConsumerSummary> consumers, long validUntil) {
        static final Report OF_ANOTHER_PROCESS = new Report(false, Map.of(), 0);

        boolean isValid() {
            return own && System.nanoTime() - validUntil < 0;
        }

        boolean endsWithin(Duration time) {
            return own && System.nanoTime() + time.toNanos() - validUntil >= 0;
        }
    }

    private ConsumerGauges(
            EventSql eventSql,
            int shard,
            String shardName,
            Duration interval,
            int consumersMax,
            List<Measure> measures) {
        this.eventSql = eventSql;
        this.shard = shard;
        this.shardName = shardName;
        this.interval = interval;
        this.consumersMax = consumersMax;
        this.measures = measures;
    }

    /**
     * Registers the gauges. The caller runs the result in each interval.
     *
     * @param interval time between two reports
     * @param consumersMax maximum number of consumers that are read
     */
    static ConsumerGauges bind(
            MeterRegistry registry,
            EventSql eventSql,
            int shard,
            String shardName,
            Duration interval,
            int consumersMax) {
        List<Measure> measures = List.of(
                measure(registry, "lag", EVENTS, "Events not handled yet", ConsumerSummary::lag),
                measure(
                        registry,
                        "age",
                        "seconds",
                        "Age of the oldest event not handled yet",
                        summary -> summary.behind().toMillis() / 1e3),
                measure(registry, "members", "members", "Living members in all processes", ConsumerSummary::members),
                measure(
                        registry,
                        "offset",
                        EVENTS,
                        "Sum of the offsets of the next events to handle",
                        ConsumerSummary::nextOffsets),
                measure(
                        registry,
                        "stopped",
                        PARTITIONS,
                        "Partitions stopped by a failure",
                        ConsumerSummary::stoppedPartitions),
                measure(registry, "paused", PARTITIONS, "Paused partitions", ConsumerSummary::pausedPartitions),
                measure(
                        registry,
                        "unassigned",
                        PARTITIONS,
                        "Partitions that should be handled and that no living member owns",
                        ConsumerSummary::unassignedPartitions),
                measure(registry, "parked", EVENTS, "Parked events", ConsumerSummary::parkedEvents),
                measure(
                        registry,
                        "dead.letters",
                        EVENTS,
                        "Dead letters that were neither redriven nor dropped",
                        ConsumerSummary::deadLetters));
        ConsumerGauges gauges = new ConsumerGauges(eventSql, shard, shardName, interval, consumersMax, measures);
        gauges.register(
                registry,
                "eventsql.consumers.reporting",
                "1 in the process that reports the consumers of the shard, 0 in all others",
                report -> report.isValid() ? 1 : 0);
        gauges.register(
                registry,
                "eventsql.consumers",
                "Consumers whose state this process reports",
                report -> report.isValid() ? report.consumers().size() : 0);
        return gauges;
    }

    private static Measure measure(
            MeterRegistry registry,
            String name,
            String unit,
            String description,
            ToDoubleFunction<ConsumerSummary> number) {
        return new Measure(
                MultiGauge.builder("eventsql.consumer." + name)
                        .description(description)
                        .baseUnit(unit)
                        .register(registry),
                number);
    }

    private void register(MeterRegistry registry, String name, String description, ToLongFunction<Report> number) {
        Gauge.builder(name, this, gauges -> {
                    gauges.readAt = System.nanoTime();
                    gauges.read = true;
                    return number.applyAsLong(gauges.report);
                })
                .description(description)
                .tag("shard", shardName)
                .strongReference(true)
                .register(registry);
    }

    @Override
    public void run() {
        try {
            refresh();
        } catch (Throwable e) { // the timer would not run it again
            LOG.error(
                    "Updating the meters of the consumers of {} failed; retrying in {} ms",
                    shardName,
                    interval.toMillis(),
                    e);
        }
    }

    /** Starts a report on a thread of its own, so that a database that hangs delays no other. */
    private void refresh() {
        if (report.endsWithin(interval)) { // the lease was not renewed: another process is about to report
            show(Report.OF_ANOTHER_PROCESS);
        }
        boolean isRead = read && System.nanoTime() - readAt < UNREAD_NANOS_MAX;
        if (isRead && reading.compareAndSet(false, true)) {
            boolean started = false;
            try {
                Thread.ofPlatform()
                        .daemon()
                        .name("eventsql-meters-consumers of " + shardName)
                        .start(this::report);
                started = true;
            } finally {
                if (!started) {
                    reading.set(false);
                }
            }
        }
    }

    private void report() {
        try {
            Duration lease = interval.multipliedBy(INTERVALS_PER_LEASE);
            long validUntil = System.nanoTime() + lease.toNanos();
            show(eventSql.reportConsumers(shard, consumersMax + 1, lease)
                    .map(summaries -> new Report(true, byName(summaries), validUntil))
                    .orElse(Report.OF_ANOTHER_PROCESS));
            if (failing.compareAndSet(true, false)) {
                LOG.info("Reporting the consumers of {} works again", shardName);
            }
        } catch (RuntimeException | Error e) { // pools throw exceptions of their own
            if (failing.compareAndSet(false, true)) {
                LOG.warn(
                        "Reporting the consumers of {} failed; retrying every {} ms: {}",
                        shardName,
                        interval.toMillis(),
                        e.getMessage());
            }
        } finally {
            reading.set(false);
        }
    }

    private Map<Consumer, ConsumerSummary> byName(List<ConsumerSummary> summaries) {
        Map<Consumer, ConsumerSummary> consumers = new LinkedHashMap<>();
        summaries.stream()
                .limit(consumersMax)
                .forEach(summary -> consumers.put(new Consumer(summary.stream(), summary.consumer()), summary));
        if (summaries.size() > consumersMax && exceeded.compareAndSet(false, true)) {
            LOG.warn(
                    "Shard {} has more than {} consumers; further ones have no meters (eventsql.metrics.max-consumers)",
                    shardName,
                    consumersMax);
        }
        return consumers;
    }

    /** Replaces the values; adds and removes gauges, because a gauge without a number would spoil sums over processes. */
    private synchronized void show(Report next) {
        long now = System.nanoTime();
        if (report.own() && !next.own()) {
            removedAt = now;
        } else if (next.own() && now - removedAt < REMOVED_NANOS_MIN) {
            return; // a later report adds them
        }
        report = next;
        for (Measure measure : measures) {
            measure.gauges()
                    .register(
                            next.consumers().keySet().stream()
                                    .map(consumer -> row(consumer, measure.number()))
                                    .toList(),
                            false);
        }
    }

    private Row<?> row(Consumer consumer, ToDoubleFunction<ConsumerSummary> number) {
        Tags tags = Tags.of("stream", consumer.stream(), "consumer", consumer.name(), "shard", shardName);
        return Row.of(tags, this, gauges -> {
            Report shown = gauges.report;
            @Nullable ConsumerSummary summary = shown.consumers().get(consumer);
            return summary == null || !shown.isValid() ? Double.NaN : number.applyAsDouble(summary);
        });
    }
}
