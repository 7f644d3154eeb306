package io.eventsql.internal.retain;

import io.eventsql.RetentionStatus;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.RetentionFunctions;
import io.eventsql.internal.sql.RetentionFunctions.End;
import io.eventsql.internal.sql.RetentionFunctions.Partition;
import io.eventsql.internal.sql.RetentionFunctions.Step;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs retention on one shard, in the background, in passes over all partitions: segments expire and are truncated, then
 * active segments end early, then empty tables are dropped. The processes of a database share the steps of a pass; the one
 * that finishes it does the rest. Used by the shard's background thread, one step at a time, so that adding segments does
 * not wait.
 */
public final class RetentionKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(RetentionKeeper.class);
    private static final Duration INTERVAL = Duration.ofSeconds(10);
    /** As long as no stream has a limit: an idle process sends hardly any statement. */
    private static final Duration IDLE_INTERVAL = Duration.ofMinutes(1);
    /** Between two steps: publishers and the tasks of other components have their turn. */
    private static final int STEP_PAUSE_MS = 5;

    private static final int ENDS_PER_PASS_MAX = 20;
    private static final int DROPS_PER_PASS_MAX = 100;
    /** More are reported, and dropped with a short wait for readers once in {@link #BLOCKED_RETRY}. */
    private static final int EMPTY_TABLES_MAX = 100;
    /** A wait of 100 ms for readers, during which publishers may wait, is repeated this seldom. */
    private static final Duration BLOCKED_RETRY = Duration.ofMinutes(1);

    private final Shard shard;
    private final Duration interval;
    private final RetentionFunctions functions;
    private final FailureSeries failures = new FailureSeries();
    private final MaintenanceWarnings warnings;
    /** The partitions whose segment could not end, with the time (nano time) of the next attempt. */
    private final Map<Partition, Long> blockedEnds = new HashMap<>();

    private long dropsBlockedUntilNanos = System.nanoTime();
    private boolean manyEmptyTables;
    private boolean isIdle;

    RetentionKeeper(Shard shard, Duration interval) {
        this.shard = shard;
        this.interval = interval;
        this.functions = shard.tables().retention();
        this.warnings = new MaintenanceWarnings("Retention", shard);
    }

    /** Runs retention on all shards from now on; processes that start together do so at different times. */
    public static void runInBackground(Shards shards) {
        for (Shard shard : shards.all()) {
            new RetentionKeeper(shard, INTERVAL)
                    .runLater(ThreadLocalRandom.current().nextLong(INTERVAL.toMillis()));
        }
    }

    private void runLater(long delayMs) {
        shard.inBackground(delayMs, () -> {
            boolean more = false;
            try {
                more = runStep();
            } finally { // also if the data source throws something unexpected
                runLater(more ? STEP_PAUSE_MS : (isIdle ? IDLE_INTERVAL : interval).toMillis());
            }
        });
    }

    /** Takes one step; returns whether to take the next one at once. */
    boolean runStep() {
        try {
            Step step = shard.require().transaction(c -> functions.expire(c, interval, warnings::add));
            isIdle = step == Step.IDLE;
            if (step == Step.FINISHED) {
                endSegments();
                dropEmptyTables();
            }
            if (failures.end() > 0) {
                LOG.info("Retention on {} works again", shard);
            }
            return step == Step.MORE;
        } catch (SQLException e) { // if the role may not do it, another process does
            if (failures.add(SqlErrors.state(e)).isNew()) {
                LOG.warn(
                        "Retention on {} failed; retrying every {} ms: {}", shard, interval.toMillis(), e.getMessage());
            } else {
                LOG.debug("Retention on {} failed again", shard, e);
            }
            return false;
        }
    }

    /** Ends active segments early. Where a reader or an error prevents it, it is retried only after a while. */
    private void endSegments() throws SQLException {
        long now = System.nanoTime();
        blockedEnds.values().removeIf(until -> until - now <= 0);
        for (Partition partition : shard.require().call(c -> functions.segmentsToEnd(c, ENDS_PER_PASS_MAX))) {
            if (blockedEnds.containsKey(partition)) {
                continue;
            }
            try {
                endSegment(partition);
            } catch (SQLException e) {
                if (SqlErrors.isConnectionLost(e)) {
                    throw e;
                }
                blockedEnds.put(partition, System.nanoTime() + BLOCKED_RETRY.toNanos());
                if (SqlErrors.state(e).equals(SqlErrors.LOCK_NOT_AVAILABLE)) {
                    LOG.debug(
                            "The segment of {} on {} is read and cannot end early; retrying in {}",
                            partition,
                            shard,
                            BLOCKED_RETRY,
                            e);
                } else {
                    warnings.add("the segment of partition " + partition.number() + " of the stream with stream_id "
                            + partition.streamId() + " in eventsql.stream cannot end early: " + SqlErrors.message(e)
                            + " (" + SqlErrors.state(e) + ")");
                }
            }
        }
    }

    private void endSegment(Partition partition) throws SQLException {
        End end = shard.require().transaction(c -> functions.endSegment(c, partition));
        if (end != End.LARGE) {
            return;
        }
        boolean begun = shard.require().transaction(c -> functions.beginSegmentEnd(c, partition));
        if (begun) {
            shard.require().transaction(c -> {
                shard.require().allowLongStatements(c);
                functions.checkSegmentEnd(c, partition);
                return partition;
            });
            shard.require().transaction(c -> functions.endSegment(c, partition));
        }
    }

    private void dropEmptyTables() throws SQLException {
        for (int i = 0; i < DROPS_PER_PASS_MAX && drop(false) > 0; i++) {
            LOG.debug("Dropped empty tables on {}", shard);
        }
        RetentionStatus status = shard.require().read(c -> functions.status(c, shard.number()));
        boolean many = status.emptyTables() > EMPTY_TABLES_MAX;
        if (many && System.nanoTime() - dropsBlockedUntilNanos >= 0 && drop(true) == 0) {
            dropsBlockedUntilNanos = System.nanoTime() + BLOCKED_RETRY.toNanos();
        }
        if (many && !manyEmptyTables) {
            LOG.warn(
                    "{} empty tables of expired segments on {} are not dropped yet, because transactions use the tables of"
                            + " their streams; retrying every {} ms",
                    status.emptyTables(),
                    shard,
                    interval.toMillis());
        } else if (!many && manyEmptyTables) {
            LOG.info("The empty tables of expired segments on {} are dropped", shard);
        }
        manyEmptyTables = many;
    }

    private int drop(boolean wait) throws SQLException {
        return shard.require().transaction(c -> functions.dropEmptySegments(c, wait, warnings::add));
    }
}
