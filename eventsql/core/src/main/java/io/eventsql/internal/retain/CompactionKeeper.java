package io.eventsql.internal.retain;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.CompactionFunctions;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.RetentionFunctions.Step;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compacts the streams of one shard, in the background, in rounds over all partitions. The processes of a database share the
 * steps. Used by the shard's background thread, one step at a time, so that adding segments does not wait. After each step it
 * pauses for half as long as that has taken.
 */
public final class CompactionKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(CompactionKeeper.class);
    private static final Duration INTERVAL = Duration.ofSeconds(10);
    /** As long as no stream is compacted: an idle process sends hardly any statement. */
    private static final Duration IDLE_INTERVAL = Duration.ofMinutes(1);

    private static final long STEP_PAUSE_MIN_MS = 5;

    private final Shard shard;
    private final Duration interval;
    private final CompactionFunctions functions;
    private final FailureSeries failures = new FailureSeries();
    private final MaintenanceWarnings warnings;
    private boolean isIdle;

    CompactionKeeper(Shard shard, Duration interval) {
        this.shard = shard;
        this.interval = interval;
        this.functions = shard.tables().compaction();
        this.warnings = new MaintenanceWarnings("Compaction", shard);
    }

    /** Compacts the streams of all shards from now on; processes that start together do so at different times. */
    public static void runInBackground(Shards shards) {
        for (Shard shard : shards.all()) {
            new CompactionKeeper(shard, INTERVAL)
                    .runLater(ThreadLocalRandom.current().nextLong(INTERVAL.toMillis()));
        }
    }

    private void runLater(long delayMs) {
        shard.inBackground(delayMs, () -> {
            boolean more = false;
            long began = System.nanoTime();
            try {
                more = runStep();
            } finally { // also if the data source throws something unexpected
                long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
                runLater(
                        more
                                ? Math.max(STEP_PAUSE_MIN_MS, tookMs / 2)
                                : (isIdle ? IDLE_INTERVAL : interval).toMillis());
            }
        });
    }

    /** Takes one step; returns whether to take the next one at once. */
    boolean runStep() {
        try {
            Database database = shard.require();
            Step step = database.transaction(c -> {
                database.allowLongStatements(c); // an index, or a segment that is copied
                return functions.compact(c, interval, warnings::add);
            });
            isIdle = step == Step.IDLE;
            if (failures.end() > 0) {
                LOG.info("Compaction on {} works again", shard);
            }
            return step == Step.MORE;
        } catch (SQLException e) { // if the role may not do it, another process does
            if (failures.add(SqlErrors.state(e)).isNew()) {
                LOG.warn(
                        "Compaction on {} failed; retrying every {} ms: {}",
                        shard,
                        interval.toMillis(),
                        e.getMessage());
            } else {
                LOG.debug("Compaction on {} failed again", shard, e);
            }
            return false;
        }
    }
}
