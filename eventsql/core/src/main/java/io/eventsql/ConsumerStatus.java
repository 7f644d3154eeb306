package io.eventsql;

import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * State of a consumer on all shards that responded, whether or not it has members.
 *
 * @param stream the consumer's stream
 * @param consumer the consumer's name
 * @param members the living members, as {@code host/process/number}, without duplicates, in alphabetical order; also those
 *     without a partition
 * @param partitions the state of each partition, ordered by shard and partition
 * @param lastError the newest error that the databases have: why a partition is stopped or its circuit breaker is open, or
 *     why the last parked event of a partition could not be handled; {@code null} if there is none
 * @param lastErrorAt when that happened, by the database's clock; {@code null} if there is no error
 */
public record ConsumerStatus(
        String stream,
        String consumer,
        List<String> members,
        List<PartitionState> partitions,
        @Nullable String lastError,
        @Nullable Instant lastErrorAt) {
    /** Copies the lists. */
    public ConsumerStatus {
        members = List.copyOf(members);
        partitions = List.copyOf(partitions);
    }

    /** Returns the number of stored events not yet handled. */
    public long lag() {
        return partitions.stream().mapToLong(PartitionState::lag).sum();
    }

    /** Returns the age of the oldest event not yet handled, by the databases' clocks; zero if there is none. */
    public Duration behind() {
        return partitions.stream()
                .map(PartitionState::behind)
                .max(Comparator.naturalOrder())
                .orElse(Duration.ZERO);
    }

    /** Returns the number of partitions in a state. */
    public int partitions(PartitionState.Status status) {
        return (int) partitions.stream().filter(p -> p.status() == status).count();
    }

    /** Returns the number of parked and dead-lettered events; see the limit of {@link PartitionState#parkedEvents()}. */
    public long parkedEvents() {
        return partitions.stream().mapToLong(PartitionState::parkedEvents).sum();
    }
}
