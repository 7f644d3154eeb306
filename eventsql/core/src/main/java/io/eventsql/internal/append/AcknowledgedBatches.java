package io.eventsql.internal.append;

import io.eventsql.internal.shard.Anchors;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.PartitionTable.LastBatch;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last batch of this process that one shard has acknowledged in each partition. Reports acknowledged events that the
 * shard has lost, because its database went back in time: once for each partition. Thread-safe.
 */
public final class AcknowledgedBatches implements Anchors {
    private static final Logger LOG = LoggerFactory.getLogger(AcknowledgedBatches.class);
    /** Afterwards another process may have deleted the batch's row, as that of a dead producer. */
    private static final long ROW_KEPT_NANOS = TimeUnit.HOURS.toNanos(12);

    private final Shard shard;
    private final PublishListeners listeners;
    /** Bounded by the number of partitions. */
    private final Map<PartitionKey, Acknowledged> last = new ConcurrentHashMap<>();

    public AcknowledgedBatches(Shard shard, PublishListeners listeners) {
        this.shard = shard;
        this.listeners = listeners;
    }

    private record PartitionKey(String stream, int partition) {}

    /**
     * A batch that was acknowledged, with the offsets of its events in one partition.
     *
     * @param streamId tells the stream from one that is created under its name after it was deleted
     */
    private record Acknowledged(
            int streamId, UUID producer, long number, long baseOffset, long nextOffset, long atNanos) {}

    /**
     * Records an acknowledged batch. Its events may begin below those acknowledged before: then the database went back in
     * time without a new incarnation, such as a virtual machine that was reset to a snapshot.
     */
    void record(UUID producer, long number, List<PartitionGroup> groups) {
        for (PartitionGroup group : groups) {
            record(producer, number, group, group.firstOffset());
        }
    }

    /** Records the acknowledged events of one partition, the first of which is stored at the offset. */
    public void record(UUID producer, long number, PartitionGroup group, long firstOffset) {
        PartitionKey partition = new PartitionKey(group.stream().name(), group.partition());
        Acknowledged batch = new Acknowledged(
                group.streamId(), producer, number, firstOffset, firstOffset + group.storedSize(), System.nanoTime());
        @Nullable Acknowledged before = last.put(partition, batch);
        if (before != null && before.streamId() == group.streamId() && firstOffset < before.nextOffset()) {
            report(partition, firstOffset, before.nextOffset());
        }
    }

    /**
     * Records the newest batches of a producer as they are stored: their acknowledgements were lost, or went to another
     * process. Never replaces a batch by an older one, which {@link #compare} must report.
     */
    public void recordStored(UUID producer, String stream, List<Integer> partitions) throws SQLException {
        List<PartitionKey> keys = partitions.stream()
                .map(partition -> new PartitionKey(stream, partition))
                .toList();
        long now = System.nanoTime();
        lastBatches(shard, producer, keys).forEach((partition, batch) -> {
            @Nullable Long number = batch.number();
            @Nullable Long base = batch.baseOffset();
            @Nullable Long next = batch.nextOffset();
            if (number != null && base != null && next != null) {
                Acknowledged found = new Acknowledged(batch.streamId(), producer, number, base, next, now);
                last.merge(
                        partition,
                        found,
                        (known, newer) ->
                                known.streamId() != newer.streamId() || base >= known.nextOffset() ? newer : known);
            }
        });
    }

    @Override
    public Runnable compare(Shard restored) throws SQLException {
        Map<PartitionKey, Acknowledged> remembered = new HashMap<>(last);
        Map<UUID, List<PartitionKey>> byProducer = new HashMap<>();
        remembered.forEach((partition, batch) -> byProducer
                .computeIfAbsent(batch.producer(), producer -> new ArrayList<>())
                .add(partition));
        Map<PartitionKey, LastBatch> stored = new HashMap<>();
        for (Map.Entry<UUID, List<PartitionKey>> ofProducer : byProducer.entrySet()) {
            stored.putAll(lastBatches(restored, ofProducer.getKey(), ofProducer.getValue()));
        }

        List<Runnable> reports = new ArrayList<>();
        remembered.forEach((partition, acknowledged) -> {
            @Nullable LastBatch batch = stored.get(partition);
            if (!isStored(acknowledged, batch) && last.remove(partition, acknowledged)) {
                long from = firstLost(acknowledged, batch);
                reports.add(() -> report(partition, from, acknowledged.nextOffset()));
            }
        });
        return () -> reports.forEach(Runnable::run);
    }

    @Override
    public void forget(String stream) {
        last.keySet().removeIf(partition -> partition.stream().equals(stream));
    }

    private static Map<PartitionKey, LastBatch> lastBatches(
            Shard restored, UUID producer, List<PartitionKey> partitions) throws SQLException {
        Map<PartitionKey, LastBatch> stored = new HashMap<>();
        restored.require()
                .read(c -> restored.tables()
                        .partitions()
                        .lastBatches(
                                c,
                                producer,
                                partitions.stream().map(PartitionKey::stream).toArray(String[]::new),
                                partitions.stream()
                                        .mapToInt(PartitionKey::partition)
                                        .toArray()))
                .forEach(batch -> stored.put(partitions.get(batch.index()), batch));
        return stored;
    }

    private static boolean isStored(Acknowledged acknowledged, @Nullable LastBatch stored) {
        if (stored == null || stored.head() < acknowledged.nextOffset()) {
            return false;
        }
        if (stored.number() == null || stored.baseOffset() == null) {
            return System.nanoTime() - acknowledged.atNanos() > ROW_KEPT_NANOS;
        }
        if (stored.number() == acknowledged.number()) {
            return stored.baseOffset() == acknowledged.baseOffset();
        }
        // A later batch was in doubt, and is stored: after the acknowledged one, if that is in the same history.
        return stored.number() > acknowledged.number() && stored.baseOffset() >= acknowledged.nextOffset();
    }

    /** Returns the offset after the last event of this publisher that is known to be stored. */
    private static long firstLost(Acknowledged acknowledged, @Nullable LastBatch stored) {
        if (stored == null) {
            return 0; // the stream itself no longer exists
        }
        @Nullable Long lastStored = stored.nextOffset();
        return lastStored != null && lastStored < acknowledged.nextOffset()
                ? lastStored
                : Math.min(stored.head(), acknowledged.baseOffset());
    }

    private void report(PartitionKey partition, long from, long to) {
        LOG.error(
                "Shard {} has lost acknowledged events: partition {} of stream {} no longer has those published by this"
                        + " process in the offsets {} to {}. The database went back in time, by a failover or a restore",
                shard,
                partition.partition(),
                partition.stream(),
                from,
                to - 1);
        listeners.historyLost(shard.number(), partition.stream(), partition.partition(), from, to);
    }
}
