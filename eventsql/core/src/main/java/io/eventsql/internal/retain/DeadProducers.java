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
 * Removes, in the background, what the databases remember of producers that have long been silent: each start of a
 * process is a new one. Of a living one it forgets only batches that are long answered, which is safe, too.
 */
public final class DeadProducers {
    private static final Logger LOG = LoggerFactory.getLogger(DeadProducers.class);
    /** Far beyond the longest time for which a batch is resent (settings.publishTimeout, at most an hour). */
    private static final Duration SILENT_FOR = Duration.ofDays(1);

    private static final Duration EVERY = Duration.ofHours(1);

    private final UUID own;
    private final long everyMs;

    /** @param own this process's producer */
    public DeadProducers(UUID own) {
        this(own, EVERY);
    }

    DeadProducers(UUID own, Duration every) {
        this.own = own;
        this.everyMs = every.toMillis();
    }

    /** From now on removes them once an hour; processes started together do so at different times. */
    public void removeInBackground(Shards shards) {
        shards.all()
                .forEach(shard -> removeLater(shard, ThreadLocalRandom.current().nextLong(everyMs)));
    }

    private void removeLater(Shard shard, long delayMs) {
        shard.inBackground(delayMs, () -> {
            try {
                remove(shard);
            } finally { // whatever the data source throws, there is a next time
                removeLater(shard, everyMs);
            }
        });
    }

    /** Removes them now; returns how many rows went, 0 if the database does not answer. */
    public int remove(Shard shard) {
        try {
            int removed = shard.require()
                    .call(c -> shard.tables().partitions().deleteDeadProducers(c, SILENT_FOR.toSeconds(), own));
            LOG.debug("Removed {} rows of dead producers on {}", removed, shard);
            return removed;
        } catch (SQLException e) {
            LOG.debug("Dead producers on {} are removed next time", shard, e);
            return 0;
        }
    }
}
