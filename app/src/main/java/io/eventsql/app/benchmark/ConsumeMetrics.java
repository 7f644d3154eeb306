package io.eventsql.app.benchmark;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The meters of handling, for each shard; touched once a batch. Thread-safe. */
final class ConsumeMetrics {
    private final MeterRegistry registry;
    private final String stream;
    private final Map<Integer, ShardMeters> shards = new ConcurrentHashMap<>();

    ConsumeMetrics(MeterRegistry registry, String stream) {
        this.registry = registry;
        this.stream = stream;
    }

    /**
     * Counts a handled batch.
     *
     * @param events all its events
     * @param foreign those of them that are no benchmark events
     */
    void handled(int shard, int events, int foreign, Duration time) {
        ShardMeters meters = shards.computeIfAbsent(shard, this::register);
        meters.events().increment(events);
        meters.foreignEvents().increment(foreign);
        meters.batchSize().record(events);
        meters.handlerTime().record(time);
    }

    private ShardMeters register(int shard) {
        String[] tags = {"stream", stream, "shard", Integer.toString(shard)};
        return new ShardMeters(
                Counter.builder("eventsql.app.events.handled")
                        .description("Events handled, repeated ones included")
                        .tags(tags)
                        .register(registry),
                Counter.builder("eventsql.app.events.foreign")
                        .description("Events handled that are no benchmark events")
                        .tags(tags)
                        .register(registry),
                DistributionSummary.builder("eventsql.app.batch.size")
                        .description("Events of one partition handled at once")
                        .tags(tags)
                        .register(registry),
                Timer.builder("eventsql.app.handler.time")
                        .description("Time to handle one batch")
                        .tags(tags)
                        .register(registry));
    }

    private record ShardMeters(
            Counter events, Counter foreignEvents, DistributionSummary batchSize, Timer handlerTime) {}
}
