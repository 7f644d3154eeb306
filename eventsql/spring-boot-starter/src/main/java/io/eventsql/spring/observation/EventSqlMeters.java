package io.eventsql.spring.observation;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.StoredEvent;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Counts and times what the library tells its listeners. Tags are names of streams, consumers and exceptions, and numbers
 * of shards and partitions: never keys or offsets. Thread-safe.
 */
public final class EventSqlMeters implements ConsumerListener, PublishListener {
    private static final String EVENTS = "events";

    private final MeterRegistry registry;
    private final Map<Integer, ShardMeters> ofShards = new ConcurrentHashMap<>();
    private final Map<String, Counter> published = new ConcurrentHashMap<>();
    private final Map<Consumer, ConsumerMeters> ofConsumers = new ConcurrentHashMap<>();
    private final Map<ConsumerPartition, Held> held = new ConcurrentHashMap<>();

    public EventSqlMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    private record ShardMeters(Timer append, DistributionSummary events, DistributionSummary bytes) {}

    private record ConsumerMeters(Timer handler, Counter handled) {}

    private record Consumer(String stream, String name) {
        Tags tags() {
            return Tags.of("stream", stream, "consumer", name);
        }
    }

    @Override
    public void appended(Appended batch) {
        ShardMeters meters = ofShards.computeIfAbsent(batch.shard(), this::shardMeters);
        meters.append.record(batch.nanos(), TimeUnit.NANOSECONDS);
        meters.events.record(batch.events());
        meters.bytes.record((double) batch.bytes());
        batch.eventsByStream()
                .forEach((stream, events) -> published
                        .computeIfAbsent(stream, this::publishedCounter)
                        .increment(events));
    }

    private ShardMeters shardMeters(int shard) {
        Tags tags = Tags.of("shard", Integer.toString(shard));
        return new ShardMeters(
                Timer.builder("eventsql.append")
                        .description("How long the database takes for a batch, its commit included")
                        .tags(tags)
                        .register(registry),
                DistributionSummary.builder("eventsql.append.batch")
                        .description("Events that are committed together")
                        .baseUnit(EVENTS)
                        .tags(tags)
                        .register(registry),
                DistributionSummary.builder("eventsql.append.size")
                        .description("Bytes that are committed together")
                        .baseUnit("bytes")
                        .tags(tags)
                        .register(registry));
    }

    private Counter publishedCounter(String stream) {
        return Counter.builder("eventsql.published")
                .description("Events committed, those from an outbox not included")
                .baseUnit(EVENTS)
                .tag("stream", stream)
                .register(registry);
    }

    @Override
    public void appendFailed(int shard, Throwable error) {
        Counter.builder("eventsql.append.failures")
                .description("Attempts to append a batch that failed and are repeated")
                .tags("shard", Integer.toString(shard), "exception", nameOf(error))
                .register(registry)
                .increment();
    }

    @Override
    public void callFailed(String stream, int events, EventSqlException error) {
        Counter.builder("eventsql.publish.failures")
                .description("Events of publish calls that failed")
                .baseUnit(EVENTS)
                .tags("stream", stream, "exception", nameOf(error))
                .register(registry)
                .increment(events);
    }

    @Override
    public void handled(ConsumerPartition partition, int events, long nanos) {
        ConsumerMeters meters = ofConsumers.computeIfAbsent(consumer(partition), this::consumerMeters);
        meters.handler.record(nanos, TimeUnit.NANOSECONDS);
        meters.handled.increment(events);
    }

    private ConsumerMeters consumerMeters(Consumer consumer) {
        return new ConsumerMeters(
                Timer.builder("eventsql.handler")
                        .description("How long a handler takes for an event or a batch")
                        .tags(consumer.tags())
                        .register(registry),
                Counter.builder("eventsql.handled")
                        .description("Events handled")
                        .baseUnit(EVENTS)
                        .tags(consumer.tags())
                        .register(registry));
    }

    @Override
    public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
        Counter.builder("eventsql.handler.failures")
                .description("Failed calls of a handler")
                .tags(new Consumer(event.stream(), consumer)
                        .tags()
                        .and("exception", nameOf(error), "retried", Boolean.toString(willRetry)))
                .register(registry)
                .increment();
    }

    @Override
    public void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {
        count("eventsql.handler.timeouts", "Handlers that ran for too long", consumer(partition));
    }

    @Override
    public void deadLettered(StoredEvent event, String consumer, int attempts, Throwable error) {
        count("eventsql.dead.letters", "Events copied to a dead-letter stream", new Consumer(event.stream(), consumer));
    }

    @Override
    public void keyParked(StoredEvent event, String consumer, int attempts, Throwable error) {
        count("eventsql.parked", "Events set aside with their key", new Consumer(event.stream(), consumer));
    }

    @Override
    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
        count("eventsql.partition.stops", "Partitions stopped by a failure", consumer(partition));
    }

    private void count(String name, String description, Consumer consumer) {
        Counter.builder(name)
                .description(description)
                .tags(consumer.tags())
                .register(registry)
                .increment();
    }

    /**
     * A partition that members of this process have. Two can for a moment: the one that loses it may say so after the one
     * that takes it.
     */
    private static final class Held {
        private int members;
        private volatile long lag;
        private @Nullable Meter gauge;
    }

    @Override
    public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
        held.compute(partition, (p, known) -> {
            Held one = known == null ? new Held() : known;
            one.members++;
            return one;
        });
    }

    @Override
    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
        held.computeIfPresent(partition, (p, one) -> {
            one.members--;
            if (one.members > 0) {
                return one;
            }
            if (one.gauge != null) {
                registry.remove(one.gauge);
            }
            return null;
        });
    }

    /** What is told of a partition that was just given back is no longer shown. */
    @Override
    public void lag(ConsumerPartition partition, long lag) {
        held.computeIfPresent(partition, (p, one) -> {
            one.lag = lag;
            if (one.gauge == null) {
                one.gauge = Gauge.builder("eventsql.consumer.lag", one, known -> known.lag)
                        .description("Events of a partition of this process that are stored and not handled yet")
                        .baseUnit(EVENTS)
                        .tags(consumer(p)
                                .tags()
                                .and(
                                        "shard",
                                        Integer.toString(p.shard()),
                                        "partition",
                                        Integer.toString(p.partition())))
                        .register(registry);
            }
            return one;
        });
    }

    private static Consumer consumer(ConsumerPartition partition) {
        return new Consumer(partition.stream(), partition.consumer());
    }

    private static String nameOf(Throwable error) {
        String simple = error.getClass().getSimpleName();
        return simple.isEmpty() ? error.getClass().getName() : simple;
    }
}
