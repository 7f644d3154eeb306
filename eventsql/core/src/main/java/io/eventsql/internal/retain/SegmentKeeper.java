package io.eventsql.internal.retain;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.PartitionTable;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the next segments of each partition ready ahead of its head. It learns of the head from the appends of this
 * process, so a quiet process costs nothing; a partition that has run out all the same makes the append fail, which then
 * calls {@link #ensureRoom} and repeats. Thread-safe.
 */
public final class SegmentKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentKeeper.class);
    private static final long RETRY_MS = 1_000;

    private final int maxBatchEvents;
    /** For each stream of a shard: by partition, the number behind the last segment known to exist or being added. */
    private final Map<StreamOnShard, AtomicLongArray> ensured = new ConcurrentHashMap<>();

    private record StreamOnShard(int shard, String stream) {}

    public SegmentKeeper(int maxBatchEvents) {
        this.maxBatchEvents = maxBatchEvents;
    }

    /** Says that a partition's head has come to {@code head}; adds segments in the background if they are due. */
    public void appended(Shard shard, StreamSpec stream, int partition, long head) {
        AtomicLongArray known = ensured(shard, stream);
        long wanted = wantedSegments(stream, head);
        long before = known.get(partition);
        if (before < wanted && known.compareAndSet(partition, before, wanted)) {
            shard.inBackground(() -> addInBackground(shard, stream, partition, head));
        }
    }

    /** Segments up to this number must exist: the head's, the next, and room for two of the largest batches. */
    private long wantedSegments(StreamSpec stream, long head) {
        return (head + 2L * maxBatchEvents) / stream.segmentSize() + 2;
    }

    private AtomicLongArray ensured(Shard shard, StreamSpec stream) {
        return ensured.computeIfAbsent(
                new StreamOnShard(shard.number(), stream.name()), key -> new AtomicLongArray(stream.partitions()));
    }

    private void addInBackground(Shard shard, StreamSpec stream, int partition, long head) {
        try {
            add(shard, stream, partition, head);
        } catch (SQLException e) {
            LOG.warn(
                    "Segments of {} partition {} on {} could not be added, next try in {} ms: {}",
                    stream.name(),
                    partition,
                    shard,
                    RETRY_MS,
                    e.getMessage());
            shard.inBackground(RETRY_MS, () -> addInBackground(shard, stream, partition, head));
        }
    }

    private boolean add(Shard shard, StreamSpec stream, int partition, long head) throws SQLException {
        boolean added = false;
        for (long segment = head / stream.segmentSize(); segment < wantedSegments(stream, head); segment++) {
            long number = segment;
            added |= shard.require()
                    .transaction(c -> shard.tables().segments().addSegment(c, stream, partition, number));
        }
        return added;
    }

    /**
     * Adds, at once, the segments that the next append of a partition needs.
     *
     * @return whether one was missing
     */
    public boolean ensureRoom(Shard shard, StreamSpec stream, int streamId, int partition) throws SQLException {
        List<PartitionTable.Head> heads =
                shard.require().call(c -> shard.tables().partitions().heads(c, new int[] {streamId}));
        return add(shard, stream, partition, heads.get(partition).head());
    }
}
