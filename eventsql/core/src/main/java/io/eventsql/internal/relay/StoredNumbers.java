package io.eventsql.internal.relay;

import io.eventsql.StreamSpec;
import io.eventsql.internal.append.AcknowledgedBatches;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.TransferredAppend.Target;
import java.sql.SQLException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Up to which numbers a shard has the events of one outbox, by producer and as far as it was queried. Only the shard knows: it is
 * queried at the beginning of a lease and after every failure. Used by one thread.
 */
final class StoredNumbers {
    private final Shard shard;
    private final AcknowledgedBatches acknowledged;
    private final Map<UUID, Known> known = new HashMap<>();
    /** Identifies the outbox to the shard; {@code null} until it was read. */
    private @Nullable UUID outboxId;

    /**
     * What is known of one producer.
     *
     * @param streamIds the streams queried
     * @param lastNumbers the number of the last event in each of their partitions
     */
    private record Known(Set<Integer> streamIds, Map<Target, Long> lastNumbers) {}

    /** @param acknowledged what this process has removed from the outbox because the shard has stored it */
    StoredNumbers(Shard shard, AcknowledgedBatches acknowledged) {
        this.shard = shard;
        this.acknowledged = acknowledged;
    }

    /** Begins a lease of an outbox. */
    void begin(UUID outbox) {
        outboxId = outbox;
        forget();
    }

    /** Forgets all: the shard is queried again. */
    void forget() {
        known.clear();
    }

    /**
     * Returns the number of the producer's last event in each partition that has one, at least in those of the streams.
     *
     * @param incarnation that of the shard's database, read before the ids of the streams
     */
    Map<Target, Long> lastNumbers(String incarnation, UUID producer, Iterable<StreamSpec> streams) throws SQLException {
        UUID outbox = Objects.requireNonNull(outboxId);
        Known ofProducer = known.computeIfAbsent(producer, p -> new Known(new HashSet<>(), new HashMap<>()));
        Set<Integer> unknown = new HashSet<>();
        for (StreamSpec stream : streams) {
            unknown.add(shard.streams().ensure(stream));
        }
        unknown.removeAll(ofProducer.streamIds());
        if (!unknown.isEmpty()) {
            int[] streamIds = unknown.stream().mapToInt(Integer::intValue).toArray();
            Map<Target, Long> found = shard.require()
                    .replicatedTransaction(c -> shard.tables()
                            .outbox()
                            .append()
                            .registerOutbox(c, incarnation, outbox, producer, streamIds));
            for (StreamSpec stream : streams) {
                recordStored(producer, stream, found.keySet());
            }
            ofProducer.lastNumbers().putAll(found);
            ofProducer.streamIds().addAll(unknown);
        }
        return Collections.unmodifiableMap(ofProducer.lastNumbers());
    }

    /** What an earlier lease, another process or an append in doubt has stored must not get lost silently, either. */
    private void recordStored(UUID producer, StreamSpec stream, Set<Target> targets) throws SQLException {
        int streamId = shard.streams().ensure(stream);
        List<Integer> partitions = targets.stream()
                .filter(target -> target.streamId() == streamId)
                .map(Target::partition)
                .toList();
        if (!partitions.isEmpty()) {
            acknowledged.recordStored(producer, stream.name(), partitions);
        }
    }

    /** Records an append to a partition that was queried. */
    void appended(UUID producer, Target target, long lastNumber) {
        Objects.requireNonNull(known.get(producer)).lastNumbers().put(target, lastNumber);
    }
}
