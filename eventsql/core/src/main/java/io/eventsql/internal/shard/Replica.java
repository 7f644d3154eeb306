package io.eventsql.internal.shard;

import io.eventsql.ReplicaStatus;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.ReplicaTable.State;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The replica of a shard: hot standbys from which events are read. With each read, another server may be behind the address, so
 * each read ends with a check in the same transaction: the server is a standby that has replayed something which the primary
 * has written in the incarnation of the caller, or it is the primary itself. Then what was read belongs to the primary's
 * history. A standby of a former primary, one that was promoted on its own, and another database are rejected.
 *
 * <p>One thread writes the primary's time at intervals and looks for it on the replica. While the replica lacks more than {@code
 * maxReplicaLag} of it, or does not answer for that long, it is not usable. Thread-safe.
 */
public final class Replica {
    private static final Logger LOG = LoggerFactory.getLogger(Replica.class);
    private static final Duration INTERVAL_MIN = Duration.ofMillis(20);
    private static final Duration INTERVAL_MAX = Duration.ofSeconds(1);
    private static final int INTERVALS_PER_LAG = 10;
    /** For that long, the replay of what was written first is awaited without a pause. */
    private static final long STARTING_NANOS = TimeUnit.SECONDS.toNanos(2);
    /** A read that conflicts with the replay is repeated at once before it fails. */
    private static final int ATTEMPTS_MAX = 3;

    private final Shard shard;
    private final Database database;
    private final Duration maxLag;
    private final Duration interval;
    private final ReplicaLag lag;
    private final VisibleHeads heads;
    private final ServiceThread thread;

    // Used by the thread alone.
    private String recordedIncarnation = "";
    private long recordedSince = System.nanoTime();
    private boolean wasUsable = true;

    Replica(Shard shard, Database database, Duration maxLag) {
        this.shard = shard;
        this.database = database;
        this.maxLag = maxLag;
        this.interval = bounded(maxLag.dividedBy(INTERVALS_PER_LAG));
        this.lag = new ReplicaLag(maxLag);
        this.heads = new VisibleHeads(shard);
        this.thread = new ServiceThread("eventsql-replica-" + shard.name(), this::watch);
    }

    private static Duration bounded(Duration value) {
        if (value.compareTo(INTERVAL_MIN) < 0) {
            return INTERVAL_MIN;
        }
        return value.compareTo(INTERVAL_MAX) > 0 ? INTERVAL_MAX : value;
    }

    void start() {
        thread.start();
    }

    /** Returns whether events may be read from it. If not, read them from the primary. */
    public boolean isUsable() {
        return lag.isUsable();
    }

    /** Returns the public description of the replica's state. */
    public ReplicaStatus status() {
        return new ReplicaStatus(shard.number(), shard.name(), isUsable(), lag.lag(), lag.problem());
    }

    /** A server whose data do not belong to the primary's history, or not yet for certain. */
    private static final class RejectedReplicaException extends SQLException {
        private static final long serialVersionUID = 1L;

        RejectedReplicaException(String reason) {
            super(reason);
        }
    }

    /**
     * Reads in a transaction. The result belongs to the history that the primary has in an incarnation.
     *
     * @param incarnation that of the primary; the work must not compare it, because a standby has one of its own
     * @throws SQLException if the replica cannot be read; nothing is known about what is there
     */
    public <T> T read(String incarnation, Database.Work<T> work) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return database.read(connection -> {
                    T result = work.run(connection);
                    lag.recordReplica(require(shard.tables()
                            .replicas()
                            .state(connection, shard.clusterId(), shard.number(), incarnation)));
                    return result;
                });
            } catch (SQLException e) {
                if (!SqlErrors.isRecoveryConflict(e) || attempt == ATTEMPTS_MAX) {
                    lag.recordProblem(SqlErrors.message(e));
                    throw new SQLException(
                            "The replica of " + shard + " could not be read: " + SqlErrors.message(e),
                            e.getSQLState(),
                            e);
                }
                LOG.debug("Reading from the replica of {} conflicts with its replay; repeating it", shard, e);
            }
        }
    }

    /** The page of a partition to be fetched. */
    public record PageOf(int streamId, int partition) {}

    /**
     * Fetches as {@link #read} reads.
     *
     * @param pagesOf where the pages of the result belong to
     * @return of each page what the primary shows, too; empty if a page has gaps, which only the primary can judge
     */
    public Optional<List<FetchedPage>> fetch(
            String incarnation, List<PageOf> pagesOf, Database.Work<List<FetchedPage>> work) throws SQLException {
        List<FetchedPage> pages = read(incarnation, work);
        return pages.stream().anyMatch(FetchedPage::hasGaps)
                ? Optional.empty()
                : Optional.of(heads.visible(incarnation, pagesOf, pages));
    }

    private static Instant require(State state) throws RejectedReplicaException {
        Instant recordedAt = state.recordedAt();
        String reason = switch (state.history()) {
            case CURRENT -> recordedAt == null ? "it has no time of the primary yet" : "";
            case NOT_REPLAYED -> "it is a standby that has not replayed anything of the primary's incarnation";
            case OTHER_HISTORY -> "it accepts writes, but is not the primary: a standby was promoted on its own";
            case OTHER_DATABASE -> "it is no copy of the shard's database";
        };
        if (recordedAt == null || !reason.isEmpty()) {
            throw new RejectedReplicaException(reason);
        }
        return recordedAt;
    }

    private void watch() throws InterruptedException {
        try {
            String incarnation = shard.incarnation();
            recordOnPrimary(incarnation);
            read(incarnation, connection -> incarnation);
        } catch (SQLException e) {
            LOG.debug("The replica of {} could not be compared with the primary", shard, e);
        }
        report();
        boolean isStarting = lag.lag() == null && System.nanoTime() - recordedSince < STARTING_NANOS;
        TimeUnit.MILLISECONDS.sleep((isStarting ? INTERVAL_MIN : interval).toMillis());
    }

    private void recordOnPrimary(String incarnation) throws SQLException {
        Instant time;
        try {
            time = shard.require().call(c -> shard.tables().replicas().record(c, incarnation, interval.dividedBy(2)));
        } catch (SQLException e) {
            shard.recheckAfter(e, incarnation);
            throw e;
        }
        if (!recordedIncarnation.equals(incarnation)) {
            lag.forget();
            recordedIncarnation = incarnation;
            recordedSince = System.nanoTime();
        }
        lag.recordPrimary(time);
    }

    private void report() {
        @Nullable Duration current = lag.lag();
        boolean isUsable = isUsable();
        // At first the replica has not replayed yet what was written for it.
        boolean isNew = current == null && System.nanoTime() - recordedSince < maxLag.toNanos();
        if (isUsable != wasUsable && !isNew) {
            wasUsable = isUsable;
            if (isUsable) {
                LOG.info("Reading from the replica of {} again; its lag is {}", shard, current);
            } else {
                @Nullable String problem = lag.problem();
                LOG.warn(
                        "The replica of {} is {} behind, and {} is allowed; reading from the primary until it has caught"
                                + " up{}",
                        shard,
                        current == null ? "an unknown time" : current,
                        maxLag,
                        problem == null ? "" : ": " + problem);
            }
        }
    }

    void beginClose() {
        thread.closeNow();
    }

    void awaitClosed(long deadlineNanos) throws InterruptedException {
        thread.join(deadlineNanos - System.nanoTime());
    }
}
