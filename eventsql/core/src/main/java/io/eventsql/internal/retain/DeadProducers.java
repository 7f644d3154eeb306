package io.eventsql.internal.retain;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Deletes, in the background, the rows of producers that have not published for a day. Each start of a process is a new
 * producer. Of a producer that still runs, only rows of batches acknowledged long ago are deleted, which is safe, too.
 */
public final class DeadProducers {
    private static final Logger LOG = LoggerFactory.getLogger(DeadProducers.class);
    private static final Duration INTERVAL = Duration.ofHours(1);

    private final UUID own;
    private final long intervalMs;

    /** @param own this process's producer */
    public DeadProducers(UUID own) {
        this(own, INTERVAL);
    }

    DeadProducers(UUID own, Duration interval) {
        this.own = own;
        this.intervalMs = interval.toMillis();
    }

    /** Deletes them once an hour from now on; processes that start together do so at different times. */
    public void removeInBackground(Shards shards) {
        shards.all()
                .forEach(shard -> removeLater(shard, ThreadLocalRandom.current().nextLong(intervalMs)));
    }

    private void removeLater(Shard shard, long delayMs) {
        shard.inBackground(delayMs, () -> {
            try {
                remove(shard);
            } finally { // also if the data source throws something unexpected
                removeLater(shard, intervalMs);
            }
        });
    }

    /** Deletes them now; returns the number of rows, 0 if the database is unavailable. */
    public long remove(Shard shard) {
        try {
            long removed = shard.require().call(c -> shard.tables().partitions().deleteDeadProducers(c, own));
            LOG.debug("Deleted {} rows of dead producers on {}", removed, shard);
            return removed;
        } catch (SQLException e) { // if the role may not delete them, another process does
            LOG.warn(
                    "Deleting the rows of dead producers on {} failed; retrying in {} ms: {}",
                    shard,
                    intervalMs,
                    e.getMessage());
            return 0;
        }
    }
}
