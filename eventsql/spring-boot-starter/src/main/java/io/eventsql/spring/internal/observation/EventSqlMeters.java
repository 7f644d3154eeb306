package io.eventsql.spring.internal.observation;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.StoredEvent;
import io.eventsql.spring.internal.ShardNamesAware;
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
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Meters of publishing and consuming. Tags are names of streams, consumers, shards and exceptions, and numbers of
 * partitions, never keys or offsets. Thread-safe.
 */
public final class EventSqlMeters implements ConsumerListener, PublishListener, ShardNamesAware {
    private static final String EVENTS = "events";

    private final MeterRegistry registry;
    private final Map<Integer, ShardMeters> ofShards = new ConcurrentHashMap<>();
    private final Map<String, Counter> published = new ConcurrentHashMap<>();
    private final Map<Consumer, ConsumerMeters> ofConsumers = new ConcurrentHashMap<>();
    private final Map<ConsumerPartition, AssignedPartition> assigned = new ConcurrentHashMap<>();
    private volatile IntFunction<String> shardNames = Integer::toString;

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
    public void setShardNames(IntFunction<String> names) {
        shardNames = names;
    }

    private String shardName(int shard) {
        return shardNames.apply(shard);
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
        Tags tags = Tags.of("shard", shardName(shard));
        return new ShardMeters(
                Timer.builder("eventsql.append")
                        .description("Duration of appending a batch, including its commit")
                        .tags(tags)
                        .register(registry),
                DistributionSummary.builder("eventsql.append.batch")
                        .description("Events in one committed batch")
                        .baseUnit(EVENTS)
                        .tags(tags)
                        .register(registry),
                DistributionSummary.builder("eventsql.append.size")
                        .description("Bytes in one committed batch")
                        .baseUnit("bytes")
                        .tags(tags)
                        .register(registry));
    }

    private Counter publishedCounter(String stream) {
        return Counter.builder("eventsql.published")
                .description("Committed events, without those from an outbox")
                .baseUnit(EVENTS)
                .tag("stream", stream)
                .register(registry);
    }

    @Override
    public void appendFailed(int shard, Throwable error) {
        Counter.builder("eventsql.append.failures")
                .description("Failed attempts to append a batch, which are retried")
                .tags("shard", shardName(shard), "exception", nameOf(error))
                .register(registry)
                .increment();
    }

    @Override
    public void callFailed(String stream, int events, EventSqlException error) {
        Counter.builder("eventsql.publish.failures")
                .description("Events of failed publish calls")
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
                        .description("Duration of a handler's call with an event or a batch")
                        .tags(consumer.tags())
                        .register(registry),
                Counter.builder("eventsql.handled")
                        .description("Handled events")
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
        count("eventsql.handler.timeouts", "Handlers that exceeded handlerTimeout", consumer(partition));
    }

    @Override
    public void deadLettered(StoredEvent event, String consumer, int attempts, Throwable error) {
        count("eventsql.dead.letters", "Events copied to a dead-letter stream", new Consumer(event.stream(), consumer));
    }

    @Override
    public void keyParked(StoredEvent event, String consumer, int attempts, Throwable error) {
        count("eventsql.parked", "Events parked with their key", new Consumer(event.stream(), consumer));
    }

    @Override
    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
        count("eventsql.partition.stops", "Partitions stopped by a failure", consumer(partition));
    }

    @Override
    public void circuitBreakerOpened(ConsumerPartition partition, int failures, Duration delay) {
        count(
                "eventsql.circuit.breaker.pauses",
                "Pauses of partitions whose events fail in a row",
                consumer(partition));
    }

    @Override
    public void handlingBlocked(ConsumerPartition partition, long committedOffset) {
        count(
                "eventsql.partition.blocks",
                "Partitions whose handling has waited for 10 s at maxEventsAhead",
                consumer(partition));
    }

    @Override
    public void eventsMissing(ConsumerPartition partition, long firstOffset, long nextOffset) {
        countEvents(
                "eventsql.events.missing",
                "Events missing from the log that a consumer has skipped",
                consumer(partition).tags(),
                nextOffset - firstOffset);
    }

    @Override
    public void eventsErased(ConsumerPartition partition, int events) {
        countEvents(
                "eventsql.events.erased",
                "Erased events that a consumer has passed without a call of the handler",
                consumer(partition).tags(),
                events);
    }

    private void countEvents(String name, String description, Tags tags, long events) {
        Counter.builder(name)
                .description(description)
                .baseUnit(EVENTS)
                .tags(tags)
                .register(registry)
                .increment((double) events);
    }

    @Override
    public void historyLost(ConsumerPartition partition, long fromOffset, long toOffset) {
        countEvents(
                "eventsql.history.lost",
                "Events or offsets that a consumer had and that a failover or a restore has lost",
                consumer(partition).tags(),
                toOffset - fromOffset);
    }

    @Override
    public void historyLost(int shard, String stream, int partition, long fromOffset, long toOffset) {
        countEvents(
                "eventsql.publish.history.lost",
                "Acknowledged events that a failover or a restore has lost",
                Tags.of("stream", stream, "shard", shardName(shard)),
                toOffset - fromOffset);
    }

    private void count(String name, String description, Consumer consumer) {
        Counter.builder(name)
                .description(description)
                .tags(consumer.tags())
                .register(registry)
                .increment();
    }

    /**
     * A partition assigned to members of this process. For a moment it can be assigned to two: the release by the former
     * member may be reported after the assignment to the next one.
     */
    private static final class AssignedPartition {
        private int members;
        private volatile long lag;
        private @Nullable Meter gauge;
    }

    @Override
    public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
        assigned.compute(partition, (p, known) -> {
            AssignedPartition one = known == null ? new AssignedPartition() : known;
            one.members++;
            return one;
        });
    }

    @Override
    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
        assigned.computeIfPresent(partition, (p, one) -> {
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

    /** The lag of a partition that was just released is ignored. */
    @Override
    public void lag(ConsumerPartition partition, long lag) {
        assigned.computeIfPresent(partition, (p, one) -> {
            one.lag = lag;
            if (one.gauge == null) {
                one.gauge = Gauge.builder("eventsql.partition.lag", one, known -> known.lag)
                        .description("Events not handled yet, of a partition assigned to this process")
                        .baseUnit(EVENTS)
                        .tags(consumer(p)
                                .tags()
                                .and("shard", shardName(p.shard()), "partition", Integer.toString(p.partition())))
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
