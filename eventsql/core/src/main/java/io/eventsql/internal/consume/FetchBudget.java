package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The bytes of fetched events that a member may keep in memory, over all its partitions and shards. Thread-safe.
 *
 * <p>Three quarters are granted to whichever partition fetches first. The last quarter is reserved in equal shares: a
 * partition that has less than half of its share in memory is always granted the rest of it. So partitions whose handlers
 * are stuck may use up the three quarters, but never what another partition needs to continue. The sum is exceeded only by
 * the last event of each page, because a page has at least one event.
 */
final class FetchBudget {
    private static final Logger LOG = LoggerFactory.getLogger(FetchBudget.class);
    private static final int RESERVED_FRACTION = 4;

    private final ConsumerSpec spec;
    private final List<FetchSchedule> schedules = new CopyOnWriteArrayList<>();
    private int partitions;
    private long usedBytes;
    private boolean isFetchDeferred;
    private boolean isReported;

    FetchBudget(ConsumerSpec spec) {
        this.spec = spec;
    }

    /** Lets fetches of a shard continue when there is room for them. */
    void add(FetchSchedule schedule) {
        schedules.add(schedule);
    }

    synchronized void addPartition() {
        partitions++;
    }

    synchronized void removePartition() {
        partitions--;
    }

    /** Returns the share of a partition in the three quarters that are granted to whichever fetches first. */
    synchronized long partitionBytes() {
        return (spec.maxFetchedBytes() - spec.maxFetchedBytes() / RESERVED_FRACTION) / Math.max(1, partitions);
    }

    /**
     * Reserves bytes for a page, to be released when its events are handled.
     *
     * @param wantedBytes the size of a full page
     * @param heldBytes what the partition has reserved already
     * @return the reserved bytes; {@code 0} if the partition must wait, until other pages are released
     */
    synchronized long reserve(long wantedBytes, long heldBytes) {
        long share = spec.maxFetchedBytes() / RESERVED_FRACTION / Math.max(1, partitions);
        long granted;
        if (usedBytes + wantedBytes <= spec.maxFetchedBytes() - spec.maxFetchedBytes() / RESERVED_FRACTION) {
            granted = wantedBytes;
        } else if (heldBytes <= share / 2) {
            granted = Math.max(1, Math.min(wantedBytes, share - heldBytes));
        } else {
            isFetchDeferred = true;
            report();
            return 0;
        }
        usedBytes += granted;
        return granted;
    }

    private void report() {
        if (!isReported) {
            isReported = true;
            LOG.info(
                    "Fetched events of consumer {} of stream {} fill maxFetchedBytes ({}); its partitions wait for each"
                            + " other's handlers",
                    spec.name(),
                    spec.stream(),
                    spec.maxFetchedBytes());
        }
    }

    /** Replaces reserved bytes by those that are in use. */
    void replace(long reservedBytes, long actualBytes) {
        boolean signals;
        synchronized (this) {
            usedBytes += actualBytes - reservedBytes;
            signals = isFetchDeferred && actualBytes < reservedBytes;
            isFetchDeferred &= !signals;
        }
        if (signals) {
            schedules.forEach(FetchSchedule::signal);
        }
    }

    void release(long bytes) {
        replace(bytes, 0);
    }

    synchronized long usedBytes() {
        return usedBytes;
    }
}
