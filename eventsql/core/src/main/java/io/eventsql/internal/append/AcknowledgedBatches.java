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
 * The last batch of this publisher that one shard has acknowledged in each partition. Reports acknowledged events that the
 * shard has lost, because its database went back in time: once for each partition. Thread-safe.
 */
final class AcknowledgedBatches implements Anchors {
    private static final Logger LOG = LoggerFactory.getLogger(AcknowledgedBatches.class);
    /** Afterwards another process may have deleted the batch's row, as that of a dead producer. */
    private static final long ROW_KEPT_NANOS = TimeUnit.HOURS.toNanos(12);

    private final Shard shard;
    private final UUID producer;
    private final PublishListeners listeners;
    /** Bounded by the number of partitions. */
    private final Map<PartitionKey, Acknowledged> last = new ConcurrentHashMap<>();

    AcknowledgedBatches(Shard shard, UUID producer, PublishListeners listeners) {
        this.shard = shard;
        this.producer = producer;
        this.listeners = listeners;
    }

    private record PartitionKey(String stream, int partition) {}

    /** A batch that was acknowledged, with the offsets of its events in one partition. */
    private record Acknowledged(long number, long baseOffset, long nextOffset, long atNanos) {}

    /**
     * Records an acknowledged batch. Its events may begin below those acknowledged before: then the database went back in
     * time without a new incarnation, such as a virtual machine that was reset to a snapshot.
     */
    void record(long number, List<PartitionGroup> groups) {
        long now = System.nanoTime();
        for (PartitionGroup group : groups) {
            PartitionKey partition = new PartitionKey(group.stream().name(), group.partition());
            @Nullable
            Acknowledged before =
                    last.put(partition, new Acknowledged(number, group.firstOffset(), group.nextOffset(), now));
            if (before != null && group.firstOffset() < before.nextOffset()) {
                report(partition, group.firstOffset(), before.nextOffset());
            }
        }
    }

    @Override
    public Runnable compare(Shard restored) throws SQLException {
        Map<PartitionKey, Acknowledged> remembered = new HashMap<>(last);
        if (remembered.isEmpty()) {
            return () -> {};
        }
        List<PartitionKey> partitions = List.copyOf(remembered.keySet());
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
