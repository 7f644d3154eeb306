package io.eventsql.internal.append;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Appends a batch and retries until its outcome is known. Used by one thread.
 *
 * <p>What happens after a failed attempt depends on its {@link ErrorKind}. Not sent, or rolled back because of the
 * environment: the batch is sent again until its calls reach their deadlines. In doubt: it is resent unchanged under its
 * number. Rejected because of its content: it is split by call, under new numbers, so that a bad call fails alone and at
 * once. Rejected because library and database disagree: the cause is removed, or the batch is split, too.
 *
 * <p>Resending is safe because the database answers a batch number that it has stored with the stored offsets, and rejects
 * a number lower than the last one. A batch that is abandoned, because all its calls have reached their deadline, can
 * therefore never be stored after a later one. An attempt in doubt may still be on its way to the database: until it can no
 * longer be stored, its calls get no other number.
 */
final class Appender {
    private static final Logger LOG = LoggerFactory.getLogger(Appender.class);
    private static final long BACKOFF_MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BACKOFF_MAX_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final int BACKOFF_DOUBLINGS_MAX = 10;
    /** After so many repairs without success a batch is retried with a pause. */
    private static final int REPAIRS_MAX = 3;
    /** After so many statement timeouts a batch is split, and a single call fails. */
    private static final int TIMEOUTS_MAX = 2;

    private final Shard shard;
    private final PublishContext context;
    private final PublishQueue queue;
    private final BatchSender sender;
    private final ShardAppender.Rerouter rerouter;
    /** Failures of adding segments, since it last succeeded. */
    private final FailureSeries segmentFailures = new FailureSeries();
    /** Failures of comparing what is remembered with the database, since that last succeeded. */
    private final FailureSeries comparisonFailures = new FailureSeries();
    /** When a batch was last stored on the shard (nano time), by any of its appenders. */
    private final AtomicLong lastSuccessNanos;

    /** @param lastSuccessNanos shared by the appenders of the shard */
    Appender(
            Shard shard,
            PublishContext context,
            PublishQueue queue,
            ShardAppender.Rerouter rerouter,
            AtomicLong lastSuccessNanos,
            AcknowledgedBatches acknowledged,
            Continuations continuations) {
        this.shard = shard;
        this.context = context;
        this.queue = queue;
        this.sender = new BatchSender(shard, context, acknowledged, continuations);
        this.rerouter = rerouter;
        this.lastSuccessNanos = lastSuccessNanos;
    }

    /** What follows a failed attempt. */
    private enum Remedy {
        /** The cause was removed: repeat immediately. */
        REPEAT,
        /** Repeat after a pause. */
        RETRY,
        /** The batch as it is will never be stored. */
        REJECT,
        /** A single call times out, and it is open whether others would, too. The others come first. */
        DEFER,
        /**
         * A single call waits for a transaction that publishes for its key, or for its stream: the queue keeps it, and those that must
         * follow it.
         */
        HOLD,
        /** A stream has grown: the calls that are not stored go back to the queue, which routes them anew. */
        REROUTE
    }

    /** Appends the batch. When this method returns, all its calls are completed, or go back to the queue. */
    void append(Batch batch) {
        Remedy remedy = appendPart(batch);
        if (remedy == Remedy.REROUTE) {
            batch.returnToQueue(PublishCall.Return.REROUTE);
        } else if (remedy == Remedy.HOLD) {
            batch.returnToQueue(PublishCall.Return.HOLD);
        } else if (remedy != null) {
            appendInParts(batch, remedy);
        }
    }

    private void appendInParts(Batch batch, Remedy remedy) {
        BatchParts parts = new BatchParts(queue, batch);
        try {
            divide(parts, batch, remedy);
            for (Batch part = parts.next(); part != null; part = parts.next()) {
                part.beginAnew(queue.nextBatchNumber()); // numbers rise in the order of sending
                Remedy ofPart = appendPart(part);
                if (ofPart == Remedy.REROUTE) {
                    parts.returnToQueue(part);
                } else if (ofPart == Remedy.HOLD) {
                    parts.hold(part);
                } else if (ofPart != null) {
                    divide(parts, part, ofPart);
                }
            }
        } catch (Throwable e) {
            parts.fail(e);
            throw e;
        } finally {
            parts.finish();
        }
    }

    private static void divide(BatchParts parts, Batch part, Remedy remedy) {
        if (remedy == Remedy.REJECT) {
            parts.split(part);
        } else if (remedy == Remedy.DEFER && !parts.defer(part)) {
            pause(part.timeouts());
        }
    }

    /** Returns what is to be done with the calls of the batch; {@code null} if all are completed. */
    private @Nullable Remedy appendPart(Batch batch) {
        boolean inDoubt = false;
        int repairs = 0;
        int retries = 0;
        for (int attempt = 0; !batch.isCompleted(); attempt++) {
            SQLException failure;
            try {
                sender.lookUpStreams(batch);
                // The look-up may have shown that a stream has other slots than its calls were routed by.
                if (!inDoubt && queue.isRerouting()) {
                    batch.beginAnew(queue.nextBatchNumber());
                    return Remedy.REROUTE;
                }
                sender.send(batch);
                lastSuccessNanos.set(System.nanoTime());
                shard.setHealthy(true);
                return null;
            } catch (SQLException e) {
                failure = e;
            }
            record(batch, failure);
            ErrorKind kind = SqlErrors.classify(failure);
            Remedy remedy = remedy(batch, failure, kind);
            inDoubt = (inDoubt || kind == ErrorKind.IN_DOUBT) && !isNeverStored(batch, failure, remedy);
            if (inDoubt) {
                remedy = remedyInDoubt(failure, remedy);
            }
            if (remedy == Remedy.REPEAT && ++repairs > REPAIRS_MAX) {
                remedy = Remedy.RETRY;
            }
            if (remedy == Remedy.RETRY && isTimeout(failure, kind, inDoubt)) {
                remedy = afterTimeout(batch, inDoubt);
            }
            if (!inDoubt) {
                batch.beginAnew(queue.nextBatchNumber());
                if (remedy != Remedy.REJECT && queue.isRerouting()) {
                    remedy = Remedy.REROUTE; // the others wait until this batch has ended
                }
            }
            switch (remedy) {
                case REPEAT -> {}
                case RETRY -> {
                    report(kind, failure, retries++);
                    if (!batch.isPart()) {
                        queue.releaseUnusedLanes(batch);
                    }
                    pause(attempt);
                }
                case REJECT -> {
                    return reject(batch, inDoubt) ? null : Remedy.REJECT;
                }
                case DEFER, HOLD, REROUTE -> {
                    return remedy;
                }
            }
        }
        return null;
    }

    /**
     * Returns whether no attempt under the batch's number is stored, nor will be when it arrives late. Its rows fail again, and a map
     * that was replaced does not become valid again. A segment, a key or a closed stream may be available then.
     */
    private boolean isNeverStored(Batch batch, SQLException failure, Remedy remedy) {
        return SqlErrors.isRaisedByRows(failure)
                || (remedy == Remedy.REROUTE
                        && SqlErrors.isOtherMap(failure)
                        && batch.calls().stream().anyMatch(this::isMapReplaced));
    }

    /** Not if the stream is closed until a move is complete, or was: then the version has another sign. */
    private boolean isMapReplaced(PublishCall call) {
        return Math.abs(call.map().version())
                != Math.abs(shard.streams().map(call.stream()).version());
    }

    /** The calls keep their number: they neither wait in the queue nor go to other partitions. */
    private static Remedy remedyInDoubt(SQLException failure, Remedy remedy) {
        if (SqlErrors.isKeyReserved(failure) || SqlErrors.isStreamPending(failure)) {
            return Remedy.RETRY;
        }
        return remedy == Remedy.REROUTE ? Remedy.REJECT : remedy;
    }

    private void record(Batch batch, SQLException failure) {
        batch.recordFailure(failure);
        shard.recordFailure(failure);
        context.listeners().appendFailed(shard.number(), failure);
    }

    private Remedy remedy(Batch batch, SQLException failure, ErrorKind kind) {
        return switch (kind) {
            case NOT_SENT, IN_DOUBT -> Remedy.RETRY;
            case ENVIRONMENT -> SqlErrors.isStreamPending(failure) ? holdAlone(batch) : Remedy.RETRY;
            case CONTENT -> Remedy.REJECT;
            case PROTOCOL -> repair(batch, failure);
        };
    }

    /** Others must not wait with the call that is the reason. */
    private static Remedy holdAlone(Batch batch) {
        return batch.calls().size() == 1 ? Remedy.HOLD : Remedy.REJECT;
    }

    private Remedy repair(Batch batch, SQLException failure) {
        if (SqlErrors.isMissingSegment(failure)) {
            return createSegments(batch, failure);
        }
        return switch (SqlErrors.state(failure)) {
            case SqlErrors.TIME_LIMIT -> Remedy.RETRY;
            case SqlErrors.OTHER_INCARNATION -> recheckIncarnation(batch);
            case SqlErrors.NOT_READ_COMMITTED -> Remedy.REPEAT; // from now on each append begins its own transaction
            case SqlErrors.KEY_RESERVED -> holdAlone(batch);
            case SqlErrors.MAP_VERSION -> readMaps(batch);
            case SqlErrors.NO_PARTITION, SqlErrors.OTHER_STREAM, SqlErrors.UNDEFINED_TABLE -> forgetStreams(batch);
            default -> Remedy.REJECT;
        };
    }

    /** Compares what is remembered of the database; the batch is then resent with the ids that its streams have now. */
    private Remedy recheckIncarnation(Batch batch) {
        try {
            boolean changed = sender.recheckIncarnation();
            comparisonFailures.end();
            return changed ? Remedy.REPEAT : Remedy.RETRY;
        } catch (SQLException e) {
            batch.recordFailure(e); // the reason that the callers need
            if (comparisonFailures.add(SqlErrors.message(e)).isNew()) {
                LOG.warn(
                        "Could not compare {} after its incarnation changed; retrying the append: {}",
                        shard,
                        SqlErrors.message(e));
            }
            return Remedy.RETRY;
        }
    }

    /**
     * A stream has grown, or keys move. Nothing of the batch is stored: the number is compared first. Calls whose map has not
     * changed are for a stream that is closed here until a move of keys is complete: they fail.
     */
    private Remedy readMaps(Batch batch) {
        try {
            Set<String> names = new HashSet<>();
            boolean hasChanged = false;
            for (PublishCall call : batch.calls()) {
                if (names.add(call.stream().name())) {
                    shard.streams().find(call.stream().name());
                }
                hasChanged |= !call.map().equals(shard.streams().map(call.stream()));
            }
            if (hasChanged) {
                return Remedy.REROUTE;
            }
            batch.recordFailure(new SQLException(
                    "the stream accepts no events on " + shard
                            + " until the move of keys to it is complete or cancelled",
                    SqlErrors.MAP_VERSION));
            return Remedy.REJECT;
        } catch (SQLException e) {
            batch.recordFailure(e); // the reason that the callers need
            LOG.warn(
                    "Could not read where the keys of a stream belong on {}; retrying: {}",
                    shard,
                    SqlErrors.message(e));
            return Remedy.RETRY;
        }
    }

    /** The streams may have been dropped, or created anew: then those that had grown have fewer partitions. */
    private Remedy forgetStreams(Batch batch) {
        boolean hasGrown = false;
        for (PublishCall call : batch.calls()) {
            hasGrown |= call.map().hasGrown();
            shard.streams().forget(call.stream().name());
            context.streams().forget(call.stream().name());
        }
        if (hasGrown) {
            return readMaps(batch);
        }
        return batch.forgetStreams() ? Remedy.REPEAT : Remedy.REJECT;
    }

    /** Adds the segments that the heads have reached; another process may add them at the same time. */
    private Remedy createSegments(Batch batch, SQLException failure) {
        try {
            boolean created = false;
            for (PartitionGroup group : batch.groupByPartition()) {
                created |= context.segments()
                        .ensureRoom(
                                shard,
                                sender.incarnation(),
                                group.stream(),
                                group.streamId(),
                                group.partition(),
                                group.size());
            }
            segmentFailures.end();
            LOG.debug("Partitions on {} had no segment; added some: {}", shard, created, failure);
            return Remedy.REPEAT;
        } catch (SQLException e) {
            if (SqlErrors.isOtherIncarnation(e)) {
                return recheckIncarnation(batch);
            } else if (SqlErrors.state(e).equals(SqlErrors.NO_PARTITION)) {
                return forgetStreams(batch);
            }
            e.addSuppressed(failure);
            batch.recordFailure(e); // the reason that the callers need
            if (segmentFailures.add(SqlErrors.message(e)).isNew()) {
                LOG.warn("Could not add a segment on {}: {}", shard, SqlErrors.message(e));
            }
            return switch (SqlErrors.classify(e)) {
                case NOT_SENT, IN_DOUBT, ENVIRONMENT -> Remedy.RETRY;
                case CONTENT, PROTOCOL -> Remedy.REJECT;
            };
        }
    }

    /** A batch in doubt waits for the lock of its own earlier attempt, whose statement has not ended. */
    private static boolean isTimeout(SQLException failure, ErrorKind kind, boolean inDoubt) {
        return switch (SqlErrors.state(failure)) {
            case SqlErrors.QUERY_CANCELED, SqlErrors.TIME_LIMIT -> true;
            case SqlErrors.LOCK_NOT_AVAILABLE -> inDoubt;
            default -> kind == ErrorKind.IN_DOUBT && SqlErrors.isTimeout(failure);
        };
    }

    /**
     * A batch of several calls is split after two timeouts, unless it is in doubt; a part of it after one. A single call
     * is rejected after two if other calls were stored since: its events are the reason.
     */
    private Remedy afterTimeout(Batch batch, boolean inDoubt) {
        batch.recordTimeout();
        boolean single = batch.calls().size() == 1;
        int timeoutsMax = batch.isPart() && !single ? 1 : TIMEOUTS_MAX;
        if (batch.timeouts() < timeoutsMax) {
            return Remedy.RETRY;
        }
        boolean othersAreStored = lastSuccessNanos.get() - batch.firstTimeoutNanos() > 0;
        if (single ? othersAreStored : !inDoubt) {
            return Remedy.REJECT;
        }
        return inDoubt ? Remedy.RETRY : Remedy.DEFER;
    }

    private void report(ErrorKind kind, SQLException failure, int retries) {
        String sentence = SqlErrors.message(failure);
        // Under a burst, other processes may fill the segments that were just added: only what lasts is worth a
        // warning.
        int unreported = SqlErrors.isMissingSegment(failure) ? REPAIRS_MAX : 0;
        if (kind == ErrorKind.IN_DOUBT) {
            LOG.warn("Append to {} is in doubt; resending with the same batch number: {}", shard, sentence);
        } else if (retries == unreported) {
            LOG.warn("Append to {} failed; retrying until the callers' deadlines: {}", shard, sentence);
        } else {
            LOG.debug("Append to {} failed again; retrying", shard, failure);
        }
        boolean unavailable = kind == ErrorKind.NOT_SENT
                || kind == ErrorKind.IN_DOUBT
                || SqlErrors.state(failure).equals(SqlErrors.READ_ONLY);
        if (unavailable) {
            shard.setHealthy(false);
            rerouter.reroute(shard, queue.takeReroutable());
        }
    }

    /**
     * Fails the calls of a batch that will never be stored.
     *
     * @return {@code false} if one of several calls may be the reason: halving the batch isolates it
     */
    private static boolean reject(Batch batch, boolean inDoubt) {
        if (inDoubt) { // an earlier attempt may have stored it: it must not get another number
            batch.calls().forEach(PublishCall::failAfterDoubt);
            return true;
        }
        if (batch.calls().size() == 1) {
            batch.calls().getFirst().failAsRejected();
            return true;
        }
        return false;
    }

    /** An interrupt ends the pause, and nothing else: a closing publisher has completed the calls of the batch. */
    private static void pause(int attempt) {
        long backoff = Math.min(BACKOFF_MIN_NANOS << Math.min(attempt, BACKOFF_DOUBLINGS_MAX), BACKOFF_MAX_NANOS);
        try {
            TimeUnit.NANOSECONDS.sleep(backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2));
        } catch (InterruptedException e) {
            LOG.debug("The pause before a retry was interrupted", e);
        }
    }

    /** Aborts the connection of a statement that has been running for too long. */
    void abortIfHung(long nowNanos) {
        sender.abortIfHung(nowNanos);
    }
}
