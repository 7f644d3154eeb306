package io.eventsql.internal.retain;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.PartitionTable;
import io.eventsql.internal.sql.SegmentTable;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds the next segments of each partition ahead of its head. It knows the head from the appends of this process, so an
 * idle process costs nothing. An append to a partition without room fails, calls {@link #ensureRoom} and is repeated.
 * Thread-safe.
 */
public final class SegmentKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentKeeper.class);
    private static final long RETRY_MIN_MS = 1_000;
    private static final long RETRY_MAX_MS = 30_000;
    private static final int BACKOFF_SHIFT_MAX = 10;

    private final int maxBatchEvents;
    /** For each stream of a shard, by partition: the number after the last segment known to exist or being added. */
    private final Map<StreamOnShard, AtomicLongArray> ensured = new ConcurrentHashMap<>();

    private record StreamOnShard(int shard, StreamSpec stream) {}

    public SegmentKeeper(int maxBatchEvents) {
        this.maxBatchEvents = maxBatchEvents;
    }

    /** Forgets which segments a shard has, because its database has another incarnation. Reports nothing. */
    public Runnable forget(Shard shard) {
        ensured.keySet().removeIf(each -> each.shard() == shard.number());
        return () -> {};
    }

    /**
     * Handles an append that moved a partition's head to {@code head}: adds segments in the background if they are due.
     */
    public void appended(Shard shard, StreamSpec stream, int partition, long head) {
        AtomicLongArray known = ensured(shard, stream);
        long wanted = wantedSegments(stream, head);
        long before = known.get(partition);
        if (before < wanted && known.compareAndSet(partition, before, wanted)) {
            shard.inBackground(() -> addInBackground(shard, stream, partition, head, 0));
        }
    }

    /**
     * Returns the number up to which segments must exist: the head's, the next, and room for two batches of maximum
     * size.
     */
    private long wantedSegments(StreamSpec stream, long head) {
        return (head + 2L * maxBatchEvents) / stream.segmentSize() + 2;
    }

    private AtomicLongArray ensured(Shard shard, StreamSpec stream) {
        return ensured.computeIfAbsent(
                new StreamOnShard(shard.number(), stream), key -> new AtomicLongArray(stream.partitions()));
    }

    private void addInBackground(Shard shard, StreamSpec stream, int partition, long head, int failures) {
        try {
            boolean sameIncarnation = addInSameIncarnation(shard, stream, partition, head);
            if (sameIncarnation && failures > 0) {
                LOG.info("Added segments to partition {} of stream {} on {}", partition, stream.name(), shard);
            }
        } catch (SQLException e) {
            long delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, BACKOFF_SHIFT_MAX));
            if (failures == 0) {
                LOG.warn(
                        "Adding segments to partition {} of stream {} on {} failed; retrying in {} ms: {}",
                        partition,
                        stream.name(),
                        shard,
                        delayMs,
                        e.getMessage());
            } else {
                LOG.debug("Adding segments on {} failed again; retrying in {} ms", shard, delayMs, e);
            }
            shard.inBackground(delayMs, () -> addInBackground(shard, stream, partition, head, failures + 1));
        }
    }

    /**
     * Returns {@code false} if the database has another incarnation, where the head may be another one: the next append
     * finds out which segments are due.
     */
    private boolean addInSameIncarnation(Shard shard, StreamSpec stream, int partition, long head) throws SQLException {
        String incarnation = shard.incarnation(); // before the id
        try {
            add(shard, incarnation, stream, shard.ensureStream(stream), partition, head);
            return true;
        } catch (SQLException e) {
            if (shard.recheckAfter(e, incarnation) && !shard.incarnation().equals(incarnation)) {
                return false;
            }
            throw e;
        }
    }

    private boolean add(Shard shard, String incarnation, StreamSpec stream, int streamId, int partition, long head)
            throws SQLException {
        SegmentTable segments = shard.tables().segments();
        long first = head / stream.segmentSize();
        List<Long> missing = shard.require()
                .call(c -> segments.findMissing(c, stream, partition, first, wantedSegments(stream, head)));
        boolean added = false;
        for (long segment : missing) {
            added |=
                    shard.require().transaction(c -> segments.addSegment(c, incarnation, streamId, partition, segment));
        }
        return added;
    }

    /**
     * Adds the segments that the next append to a partition needs, before it returns.
     *
     * @param incarnation that of the database when the stream's id was read
     * @return whether a segment was missing
     * @throws SQLException {@link SqlErrors#OTHER_INCARNATION} if the database has another incarnation: nothing was added
     */
    public boolean ensureRoom(Shard shard, String incarnation, StreamSpec stream, int streamId, int partition)
            throws SQLException {
        List<PartitionTable.Head> heads =
                shard.require().call(c -> shard.tables().partitions().heads(c, incarnation, new int[] {streamId}));
        return add(
                shard,
                incarnation,
                stream,
                streamId,
                partition,
                heads.get(partition).head());
    }
}
