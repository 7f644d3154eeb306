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
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gauges of all consumers of one shard, as its database contains them: also of those without a member in any process. Every
 * process that has them shows the same values. Thread-safe.
 */
final class ConsumerGauges {
    private static final Logger LOG = LoggerFactory.getLogger(ConsumerGauges.class);
    private static final String EVENTS = "events";
    private static final String PARTITIONS = "partitions";

    private final EventSql eventSql;
    private final int shard;
    private final String shardName;
    private final int consumersMax;
    private final Readings<Map<Consumer, ConsumerSummary>> readings;
    private final List<Measure> measures;
    private final AtomicBoolean exceeded = new AtomicBoolean();

    private record Consumer(String stream, String name) {}

    private record Measure(MultiGauge gauges, ToDoubleFunction<ConsumerSummary> number) {}

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
        this.consumersMax = consumersMax;
        this.measures = measures;
        this.readings = new Readings<>("consumers of " + shardName, interval, this::read);
    }

    /**
     * Registers the gauges, and starts the first reading.
     *
     * @param interval shortest time between two readings
     * @param consumersMax maximum number of consumers that are read
     */
    static void bind(
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
        Gauge.builder("eventsql.consumers", gauges, g -> g.readings.get(Map::size))
                .description("Consumers whose state is shown")
                .tag("shard", shardName)
                .strongReference(true)
                .register(registry);
        gauges.readings.refresh();
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

    /** Reads the consumers, and adds and removes their gauges. */
    private Map<Consumer, ConsumerSummary> read() {
        Map<Consumer, ConsumerSummary> read = new LinkedHashMap<>();
        for (ConsumerSummary summary : eventSql.consumers(shard, consumersMax + 1)) {
            read.put(new Consumer(summary.stream(), summary.consumer()), summary);
        }
        if (read.size() > consumersMax) {
            read.remove(List.copyOf(read.keySet()).getLast());
            if (exceeded.compareAndSet(false, true)) {
                LOG.warn(
                        "Shard {} has more than {} consumers; further ones have no meters (eventsql.metrics.max-consumers)",
                        shardName,
                        consumersMax);
            }
        }
        for (Measure measure : measures) {
            measure.gauges()
                    .register(
                            read.keySet().stream()
                                    .map(consumer -> row(consumer, measure.number()))
                                    .toList(),
                            false);
        }
        return read;
    }

    private Row<?> row(Consumer consumer, ToDoubleFunction<ConsumerSummary> number) {
        Tags tags = Tags.of("stream", consumer.stream(), "consumer", consumer.name(), "shard", shardName);
        return Row.of(
                tags,
                this,
                gauges -> gauges.readings.get(known -> {
                    @Nullable ConsumerSummary summary = known.get(consumer);
                    return summary == null ? Double.NaN : number.applyAsDouble(summary);
                }));
    }
}
