package io.eventsql.internal.append;

import io.eventsql.Settings;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Appends a batch and retries until its outcome is known: after a transient error or without a response, it resends the
 * unchanged batch with the same batch number. Used by one thread.
 *
 * <p>Resending is safe because the database answers a batch number that it has stored with the stored offsets, and rejects
 * a number lower than the last one. A batch that is abandoned, because all its calls have reached their deadline, can
 * therefore never be stored after a later one.
 */
final class Appender {
    private static final Logger LOG = LoggerFactory.getLogger(Appender.class);
    private static final long BACKOFF_MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BACKOFF_MAX_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** One for sending the request, one for waiting for the response. */
    private static final int HUNG_AFTER_NETWORK_TIMEOUTS = 2;

    private final Shard shard;
    private final UUID producer;
    private final PublishQueue queue;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final ShardAppender.Rerouter rerouter;
    private final PublishListeners listeners;
    private final AcknowledgedBatches acknowledged;
    private final long hungAfterNanos;
    /** The statement in progress; {@code null} if there is none. */
    private volatile @Nullable RunningStatement running;

    private record RunningStatement(Connection connection, long sinceNanos) {}

    Appender(
            Shard shard,
            UUID producer,
            Settings settings,
            PublishQueue queue,
            SegmentKeeper segments,
            WakeUp wakeUp,
            ShardAppender.Rerouter rerouter,
            PublishListeners listeners,
            AcknowledgedBatches acknowledged) {
        this.shard = shard;
        this.producer = producer;
        this.queue = queue;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.rerouter = rerouter;
        this.listeners = listeners;
        this.acknowledged = acknowledged;
        this.hungAfterNanos =
                HUNG_AFTER_NETWORK_TIMEOUTS * settings.networkTimeout().toNanos();
    }

    /** Appends the batch. When this method returns, all its calls are completed. */
    void append(Batch batch) throws InterruptedException {
        boolean inDoubt = false;
        for (int attempt = 0; ; attempt++) {
            Failure failure;
            try {
                send(batch);
                shard.setHealthy(true);
                return;
            } catch (SQLException e) {
                failure = classify(batch, e);
                shard.recordFailure(e);
                listeners.appendFailed(shard.number(), e);
            } catch (UnknownStreamException e) {
                failure = new Failure(Verdict.REJECTED, new SQLException(e.getMessage(), e));
            }
            switch (failure.verdict()) {
                case DATA_ERROR -> {
                    // Raised after the check of the batch number: an earlier attempt in doubt was not stored either.
                    shard.setHealthy(true);
                    appendHalves(batch, failure.cause());
                    return;
                }
                case REJECTED -> {
                    if (inDoubt) { // an earlier attempt may have stored it: it must not get another number
                        failAsUnknown(batch, failure.cause());
                    } else {
                        appendHalves(batch, failure.cause());
                    }
                    return;
                }
                case RETRY_IMMEDIATELY -> {
                    continue;
                }
                case NOT_SENT, ROLLED_BACK -> LOG.debug("Append to {} failed; retrying", shard, failure.cause());
                case IN_DOUBT -> {
                    inDoubt = true;
                    LOG.warn(
                            "Append to {} is in doubt; resending with the same batch number: {}",
                            shard,
                            failure.cause().getMessage());
                }
            }
            if (failure.verdict() != Verdict.ROLLED_BACK) {
                shard.setHealthy(false);
                rerouter.reroute(shard, queue.takeReroutable());
            }
            if (batch.isCompleted()) {
                return; // all calls have reached their deadline
            }
            pause(attempt);
        }
    }

    private enum Verdict {
        /** The request was not sent because there was no connection. */
        NOT_SENT,
        /** The database rolled it back because of a transient error. */
        ROLLED_BACK,
        /** The cause of the failure was removed. */
        RETRY_IMMEDIATELY,
        /** It may be committed or not. */
        IN_DOUBT,
        /** One of its events can never be stored. */
        DATA_ERROR,
        /** The database rejects it regardless of its content. */
        REJECTED
    }

    private record Failure(Verdict verdict, SQLException cause) {}

    /** Thrown if an attempt failed before the statement was sent. */
    private static final class NotSentException extends SQLException {
        private static final long serialVersionUID = 1L;

        NotSentException(SQLException cause) {
            super(cause.getMessage(), cause.getSQLState(), cause);
        }
    }

    /** Thrown if the database has rejected a statement because it has another incarnation: nothing was stored. */
    private static final class OtherIncarnationException extends SQLException {
        private static final long serialVersionUID = 1L;

        private final String rejected;

        OtherIncarnationException(SQLException cause, String rejected) {
            super(cause.getMessage(), cause.getSQLState(), cause);
            this.rejected = rejected;
        }
    }

    private void send(Batch batch) throws SQLException {
        try (Connection connection = borrow()) {
            String incarnation = shard.incarnation(); // before the ids of the streams
            lookUpStreams(batch);
            if (!batch.beginSending()) {
                return; // all calls have reached their deadline
            }
            List<PartitionGroup> groups = batch.groupByPartition(shard);
            long sentAt = System.nanoTime();
            long[] firstOffsets = execute(connection, batch.number(), incarnation, PartitionGroup.toRows(groups));
            long nanos = System.nanoTime() - sentAt;
            for (int i = 0; i < firstOffsets.length; i++) {
                groups.get(i).storedAt(firstOffsets[i]);
            }
            acknowledged.record(batch.number(), groups);
            batch.complete(shard, groups);
            for (PartitionGroup group : groups) {
                segments.appended(shard, group.stream(), group.partition(), group.nextOffset());
                wakeUp.appended(shard, group.streamId(), group.partition());
            }
            listeners.appended(shard.number(), batch, groups, nanos);
        }
    }

    /** Looks up the batch's streams on this shard, as far as they are not cached. */
    private void lookUpStreams(Batch batch) throws SQLException {
        try {
            for (PublishCall call : batch.calls()) {
                shard.ensureStream(call.stream());
            }
        } catch (SQLException e) {
            throw new NotSentException(e);
        }
    }

    private long[] execute(Connection connection, long number, String incarnation, AppendStatement.Rows rows)
            throws SQLException {
        running = new RunningStatement(connection, System.nanoTime());
        try {
            return shard.tables().append().execute(connection, producer, number, shard.mapVersion(), incarnation, rows);
        } catch (SQLException e) {
            if (SqlErrors.isOtherIncarnation(e)) {
                throw new OtherIncarnationException(e, incarnation);
            }
            throw e;
        } finally {
            running = null;
        }
    }

    /**
     * Aborts the connection of a statement that has been running for too long. The network timeout limits the wait for a
     * response, but not the sending, which also hangs once the network buffers are full.
     */
    void abortIfHung(long nowNanos) {
        RunningStatement hung = running;
        if (hung == null || nowNanos - hung.sinceNanos() < hungAfterNanos) {
            return;
        }
        running = null;
        LOG.warn("Aborting hung connection to {}", shard);
        try {
            hung.connection().abort(Runnable::run);
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            LOG.debug("The connection was returned to its pool before it could be aborted", e);
        }
    }

    private Connection borrow() throws SQLException {
        try {
            return shard.require().borrow();
        } catch (SQLException e) {
            throw new NotSentException(e);
        }
    }

    private Failure classify(Batch batch, SQLException e) {
        Verdict verdict;
        String state = SqlErrors.state(e);
        if (e instanceof NotSentException) {
            verdict = Verdict.NOT_SENT;
        } else if (state.equals(SqlErrors.NOT_READ_COMMITTED)) {
            shard.database().ifPresent(Database::requireReadCommitted);
            verdict = Verdict.RETRY_IMMEDIATELY;
        } else if (e instanceof OtherIncarnationException other) {
            verdict = recheck(other.rejected);
        } else if (state.equals(SqlErrors.OTHER_STREAM)) {
            batch.calls().forEach(call -> shard.forgetStream(call.stream().name()));
            verdict = Verdict.ROLLED_BACK;
        } else if (SqlErrors.isMissingSegment(e)) {
            verdict = createSegments(batch);
        } else if (SqlErrors.isDataError(e)) {
            verdict = Verdict.DATA_ERROR;
        } else if (SqlErrors.isRefused(e)) {
            batch.calls().forEach(call -> shard.forgetStream(call.stream().name()));
            verdict = Verdict.REJECTED;
        } else {
            verdict = SqlErrors.isRolledBack(e) ? Verdict.ROLLED_BACK : Verdict.IN_DOUBT;
        }
        return new Failure(verdict, e);
    }

    /** Compares what is remembered of the database; the batch is then resent with the ids that streams have now. */
    private Verdict recheck(String rejected) {
        try {
            shard.recheckIncarnation(rejected);
            return shard.incarnation().equals(rejected) ? Verdict.ROLLED_BACK : Verdict.RETRY_IMMEDIATELY;
        } catch (SQLException e) {
            LOG.warn("Could not compare {} after its incarnation changed; retrying the append: {}", shard, e.getMessage());
            return Verdict.ROLLED_BACK;
        }
    }

    /** Adds the segments that the heads have reached; another process may add them at the same time. */
    private Verdict createSegments(Batch batch) {
        try {
            boolean created = false;
            for (PartitionGroup group : batch.groupByPartition(shard)) {
                created |= segments.ensureRoom(shard, group.stream(), group.streamId(), group.partition());
            }
            return created ? Verdict.RETRY_IMMEDIATELY : Verdict.ROLLED_BACK;
        } catch (SQLException e) {
            LOG.warn("Could not add a segment on {}; retrying the append: {}", shard, e.getMessage());
            return Verdict.ROLLED_BACK;
        }
    }

    /** Isolates a rejected call by halving the batch, so that the other calls succeed. Keeps the order of the calls. */
    private void appendHalves(Batch batch, SQLException cause) throws InterruptedException {
        int calls = batch.calls().size();
        if (calls == 1) {
            batch.calls().getFirst().failAsNotStored("the database rejected it: " + cause.getMessage(), cause);
            return;
        }
        append(batch.split(0, calls / 2, queue.nextBatchNumber()));
        append(batch.split(calls / 2, calls, queue.nextBatchNumber()));
    }

    private static void failAsUnknown(Batch batch, SQLException cause) {
        for (PublishCall call : batch.calls()) {
            call.failAsUnknown(
                    "the append was in doubt, and the database rejected the retry: " + cause.getMessage(), cause);
        }
    }

    private static void pause(int attempt) throws InterruptedException {
        long backoff = Math.min(BACKOFF_MIN_NANOS << Math.min(attempt, 10), BACKOFF_MAX_NANOS);
        TimeUnit.NANOSECONDS.sleep(backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2));
    }
}
