package io.eventsql.spring.internal.actuate;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * The partitions of this process whose handling pauses because their events fail in a row, or waits at {@code
 * maxEventsAhead}. Thread-safe.
 */
public final class DelayedPartitions implements ConsumerListener {
    private final Map<ConsumerPartition, String> openCircuitBreakers = new ConcurrentHashMap<>();
    private final Map<ConsumerPartition, String> blocked = new ConcurrentHashMap<>();

    @Override
    public void circuitBreakerOpened(ConsumerPartition partition, int failures, Duration delay) {
        openCircuitBreakers.put(partition, failures + " failures in a row; pausing for " + delay.toMillis() + " ms");
    }

    @Override
    public void circuitBreakerClosed(ConsumerPartition partition) {
        openCircuitBreakers.remove(partition);
    }

    @Override
    public void handlingBlocked(ConsumerPartition partition, long committedOffset) {
        blocked.put(partition, "maxEventsAhead events ahead of the committed offset " + committedOffset);
    }

    @Override
    public void handlingContinued(ConsumerPartition partition) {
        blocked.remove(partition);
    }

    @Override
    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
        openCircuitBreakers.remove(partition);
        blocked.remove(partition);
    }

    /** Returns the failures of partitions with an open circuit breaker, by consumer and partition. */
    Map<String, String> openCircuitBreakers() {
        return byName(openCircuitBreakers);
    }

    /** Returns what partitions at {@code maxEventsAhead} wait for, by consumer and partition. */
    Map<String, String> blocked() {
        return byName(blocked);
    }

    private static Map<String, String> byName(Map<ConsumerPartition, String> partitions) {
        return partitions.entrySet().stream()
                .collect(Collectors.toMap(
                        entry -> name(entry.getKey()), Map.Entry::getValue, (one, other) -> other, TreeMap::new));
    }

    private static String name(ConsumerPartition partition) {
        return partition.stream() + "/" + partition.consumer() + ", shard " + partition.shard() + ", partition "
                + partition.partition();
    }
}
