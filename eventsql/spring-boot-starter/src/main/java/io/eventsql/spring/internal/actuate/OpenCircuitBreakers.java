package io.eventsql.spring.internal.actuate;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/** The partitions of this process that pause because their events fail in a row. Thread-safe. */
public final class OpenCircuitBreakers implements ConsumerListener {
    private final Map<ConsumerPartition, String> open = new ConcurrentHashMap<>();

    @Override
    public void circuitBreakerOpened(ConsumerPartition partition, int failures, Duration delay) {
        open.put(partition, failures + " failures in a row; pausing for " + delay.toMillis() + " ms");
    }

    @Override
    public void circuitBreakerClosed(ConsumerPartition partition) {
        open.remove(partition);
    }

    @Override
    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
        open.remove(partition);
    }

    boolean isEmpty() {
        return open.isEmpty();
    }

    /** Returns the failures by consumer and partition. */
    Map<String, String> details() {
        return open.entrySet().stream()
                .collect(Collectors.toMap(
                        entry -> name(entry.getKey()), Map.Entry::getValue, (one, other) -> other, TreeMap::new));
    }

    private static String name(ConsumerPartition partition) {
        return partition.stream() + "/" + partition.consumer() + ", shard " + partition.shard() + ", partition "
                + partition.partition();
    }
}
