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
 * Appends a batch until its outcome is known: resends it unchanged, under the same number, while the answer is an error
 * that can pass or no answer at all. Used by one thread.
 *
 * <p>Why that is safe: the database answers a number it has stored with the stored offsets, and refuses a lower number
 * than the last. A batch that is given up, because all its callers have been told that the outcome is unknown, can
 * therefore never be stored behind a later one.
 */
final class Appender {
    private static final Logger LOG = LoggerFactory.getLogger(Appender.class);
    private static final long BACKOFF_MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BACKOFF_MAX_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** One for sending the request, one for waiting for the answer. */
    private static final int NETWORK_TIMEOUTS_UNTIL_HANGING = 2;

    private final Shard shard;
    private final UUID producer;
    private final PublishQueue queue;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final ShardAppender.Rerouter rerouter;
    private final PublishListeners news;
    private final long hangingNanos;
    /** The statement under way; {@code null} if none is. */
    private volatile @Nullable Running running;

    private record Running(Connection connection, long sinceNanos) {}

    Appender(
            Shard shard,
            UUID producer,
            Settings settings,
            PublishQueue queue,
            SegmentKeeper segments,
            WakeUp wakeUp,
            ShardAppender.Rerouter rerouter,
            PublishListeners news) {
        this.shard = shard;
        this.producer = producer;
        this.queue = queue;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.rerouter = rerouter;
        this.news = news;
        this.hangingNanos =
                NETWORK_TIMEOUTS_UNTIL_HANGING * settings.networkTimeout().toNanos();
    }

    /** Appends the batch; when it returns, every call of it is completed. */
    void append(Batch batch) throws InterruptedException {
        boolean inDoubt = false;
        for (int attempt = 0; ; attempt++) {
            Failure failure;
            try {
                send(batch);
                reached();
                return;
            } catch (SQLException e) {
                failure = classify(batch, e);
                shard.recordFailure(e);
                news.appendFailed(shard.number(), e);
            } catch (UnknownStreamException e) {
                failure = new Failure(Verdict.REFUSED, new SQLException(e.getMessage(), e));
            }
            switch (failure.verdict()) {
                case DATA_ERROR -> {
                    // Found behind the check of the number: an earlier attempt in doubt was not stored either.
                    reached();
                    appendParts(batch, failure.cause());
                    return;
                }
                case REFUSED -> {
                    if (inDoubt) { // perhaps stored before it was refused: never again under another number
                        failUnknown(batch, failure.cause());
                    } else {
                        appendParts(batch, failure.cause());
                    }
                    return;
                }
                case REPEAT_AT_ONCE -> {
                    continue;
                }
                case NOT_SENT, ROLLED_BACK -> LOG.debug("Append to {} is repeated", shard, failure.cause());
                case IN_DOUBT -> {
                    inDoubt = true;
                    LOG.warn(
                            "Append to {} got no clear answer and is resent under the same number: {}",
                            shard,
                            failure.cause().getMessage());
                }
            }
            if (failure.verdict() != Verdict.ROLLED_BACK) {
                shard.setHealthy(false);
                rerouter.reroute(shard, queue.takeMovable());
            }
            if (batch.isCompleted()) {
                return; // every caller was told at its deadline
            }
            pause(attempt);
        }
    }

    private enum Verdict {
        /** The request never left: no connection. */
        NOT_SENT,
        /** The database said that it did not store it, and that may pass. */
        ROLLED_BACK,
        /** The reason was removed. */
        REPEAT_AT_ONCE,
        /** Committed or not: only the database knows. */
        IN_DOUBT,
        /** Some event of it can never be stored. */
        DATA_ERROR,
        /** The database will not store it, whatever is in it. */
        REFUSED
    }

    private record Failure(Verdict verdict, SQLException cause) {}

    /** It failed before the statement was sent: no connection, or the stream could not be looked up. */
    private static final class NotSentException extends SQLException {
        private static final long serialVersionUID = 1L;

        NotSentException(SQLException cause) {
            super(cause.getMessage(), cause.getSQLState(), cause);
        }
    }

    private void send(Batch batch) throws SQLException {
        try (Connection connection = borrow()) {
            learnStreams(batch);
            if (!batch.beginSending()) {
                return; // every caller was told at its deadline
            }
            List<PartitionGroup> groups = batch.groups(shard);
            long sentAt = System.nanoTime();
            long[] bases = execute(connection, batch.number(), PartitionGroup.rows(groups));
            long nanos = System.nanoTime() - sentAt;
            for (int i = 0; i < bases.length; i++) {
                groups.get(i).base = bases[i];
            }
            batch.stored(shard, groups);
            for (PartitionGroup group : groups) {
                segments.appended(shard, group.stream, group.partition, group.base + group.events.size());
                wakeUp.appended(shard, group.streamId, group.partition);
            }
            news.appended(shard.number(), batch, groups, nanos);
        }
    }

    /** Looks up what this process does not know yet of the batch's streams. */
    private void learnStreams(Batch batch) throws SQLException {
        try {
            for (PublishCall call : batch.calls()) {
                shard.ensureStream(call.stream());
            }
        } catch (SQLException e) {
            throw new NotSentException(e);
        }
    }

    private long[] execute(Connection connection, long number, AppendStatement.Rows rows) throws SQLException {
        running = new Running(connection, System.nanoTime());
        try {
            return shard.tables().append().execute(connection, producer, number, shard.mapVersion(), rows);
        } finally {
            running = null;
        }
    }

    /**
     * Ends the connection of a statement that has been under way for too long. The network timeout limits the waiting
     * for an answer, but not the sending: that hangs, too, once the buffers between here and there are full.
     */
    void abortIfHanging(long nowNanos) {
        Running hanging = running;
        if (hanging == null || nowNanos - hanging.sinceNanos() < hangingNanos) {
            return;
        }
        running = null;
        LOG.warn("A connection to {} hangs and is ended", shard);
        try {
            hanging.connection().abort(Runnable::run);
        } catch (SQLException | RuntimeException e) { // a pool's own
            LOG.debug("The connection has just been given back", e);
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
            verdict = Verdict.REPEAT_AT_ONCE;
        } else if (SqlErrors.isMissingSegment(e)) {
            verdict = createSegments(batch);
        } else if (SqlErrors.isDataError(e)) {
            verdict = Verdict.DATA_ERROR;
        } else if (SqlErrors.isRefused(e)) {
            batch.calls().forEach(call -> shard.forgetStream(call.stream().name()));
            verdict = Verdict.REFUSED;
        } else {
            verdict = SqlErrors.isRolledBack(e) ? Verdict.ROLLED_BACK : Verdict.IN_DOUBT;
        }
        return new Failure(verdict, e);
    }

    /** The head has reached a segment that is not there yet; another process may add it at the same moment. */
    private Verdict createSegments(Batch batch) {
        try {
            boolean created = false;
            for (PartitionGroup group : batch.groups(shard)) {
                created |= segments.ensureRoom(shard, group.stream, group.streamId, group.partition);
            }
            return created ? Verdict.REPEAT_AT_ONCE : Verdict.ROLLED_BACK;
        } catch (SQLException e) {
            LOG.warn("A segment for {} could not be added: {}", shard, e.getMessage());
            return Verdict.ROLLED_BACK;
        }
    }

    /** One bad call must fail alone: halves the batch until the call is found. The order of the calls stays. */
    private void appendParts(Batch batch, SQLException cause) throws InterruptedException {
        int calls = batch.calls().size();
        if (calls == 1) {
            batch.calls().getFirst().notStored("the database refused it: " + cause.getMessage(), cause);
            return;
        }
        append(batch.part(0, calls / 2, queue.nextBatchNumber()));
        append(batch.part(calls / 2, calls, queue.nextBatchNumber()));
    }

    private static void failUnknown(Batch batch, SQLException cause) {
        for (PublishCall call : batch.calls()) {
            call.unknown("the database gave no clear answer and then refused it: " + cause.getMessage(), cause);
        }
    }

    private void reached() {
        shard.setHealthy(true);
    }

    private static void pause(int attempt) throws InterruptedException {
        long backoff = Math.min(BACKOFF_MIN_NANOS << Math.min(attempt, 10), BACKOFF_MAX_NANOS);
        TimeUnit.NANOSECONDS.sleep(backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2));
    }
}
