package io.eventsql.internal.append;

import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.ExpectedAppendStatement;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.NotSentException;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamPendingException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends a batch to the database once. Used by one thread, except {@link #abortIfHung}. */
final class BatchSender {
    private static final Logger LOG = LoggerFactory.getLogger(BatchSender.class);
    /** One for sending the request, one for waiting for the response. */
    private static final int HUNG_AFTER_NETWORK_TIMEOUTS = 2;

    private final Shard shard;
    private final PublishContext context;
    private final AcknowledgedBatches acknowledged;
    private final Continuations continuations;
    private final long hungAfterNanos;
    /** The incarnation of the database that the last attempt was for. */
    private String incarnation = "";
    /** The statement in progress; {@code null} if there is none. */
    private volatile @Nullable RunningStatement running;

    private record RunningStatement(Connection connection, long sinceNanos) {}

    BatchSender(Shard shard, PublishContext context, AcknowledgedBatches acknowledged, Continuations continuations) {
        this.shard = shard;
        this.context = context;
        this.acknowledged = acknowledged;
        this.continuations = continuations;
        this.hungAfterNanos = HUNG_AFTER_NETWORK_TIMEOUTS
                * context.settings().networkTimeout().toNanos();
    }

    /**
     * Sends the batch, whose streams were looked up, and completes its calls, after the connection was returned to its pool.
     *
     * @throws SQLException see {@link SqlErrors#classify}
     */
    void send(Batch batch) throws SQLException {
        Optional<Stored> result = shard.require().replicatedCall(connection -> store(connection, batch));
        if (result.isEmpty()) {
            return; // all calls have reached their deadline
        }
        Stored stored = result.get();
        acknowledged.record(context.producer(), batch.number(), stored.groups());
        List<Runnable> completions = new ArrayList<>(batch.sentCalls());
        try {
            batch.complete(shard, stored.groups(), stored.conflicts(), completions);
        } finally { // also what is complete when the memory ends
            continuations.executeAll(completions);
        }
        for (PartitionGroup group : stored.groups()) {
            if (group.storedSize() > 0) {
                context.segments()
                        .appended(shard, group.stream(), group.partition(), group.nextOffset(), group.storedSize());
                context.wakeUp().appended(shard, group.streamId(), group.partition());
            }
        }
        context.listeners().appended(shard.number(), batch, stored.groups(), stored.nanos());
    }

    /**
     * The events as they were stored, and the duration of that.
     *
     * @param conflicts the calls that were not stored, with the version that their key had
     */
    private record Stored(List<PartitionGroup> groups, Map<PublishCall, Long> conflicts, long nanos) {}

    private Optional<Stored> store(Connection connection, Batch batch) throws SQLException {
        if (!batch.beginSending()) {
            return Optional.empty();
        }
        List<PartitionGroup> groups = batch.groupByPartition();
        Map<PublishCall, Long> conflicts = Map.of();
        long[] firstOffsets;
        long sentAt = System.nanoTime();
        if (batch.expectsVersions()) {
            ExpectedSteps steps = new ExpectedSteps(groups);
            ExpectedAppendStatement.Outcome outcome = executeExpected(connection, batch, groups, steps);
            firstOffsets = outcome.firstOffsets();
            conflicts = steps.leaveOut(outcome.conflicts());
        } else {
            firstOffsets = execute(connection, batch, groups);
        }
        long nanos = System.nanoTime() - sentAt;
        for (int i = 0; i < firstOffsets.length; i++) {
            groups.get(i).storedAt(firstOffsets[i]);
        }
        return Optional.of(new Stored(groups, conflicts, nanos));
    }

    /**
     * Looks up the ids of the batch's streams. The shard may say by that that a stream has other slots than is known.
     *
     * @throws SQLException see {@link SqlErrors#classify}; {@link SqlErrors#NO_PARTITION} if a stream was dropped; {@link
     *     StreamPendingException} if only an unavailable shard may have it
     */
    void lookUpStreams(Batch batch) throws SQLException {
        try {
            incarnation = shard.incarnation(); // before the ids
            batch.lookUpStreams(incarnation, this::streamId);
        } catch (SQLException e) {
            throw SqlErrors.classify(e) == ErrorKind.IN_DOUBT ? new NotSentException(e) : e;
        }
    }

    /**
     * Returns the stream's id on this shard. A shard that was unavailable when the stream was created gets it now, as it is on
     * the others; a stream that was dropped is not created again.
     */
    private int streamId(StreamSpec stream) throws SQLException {
        OptionalInt known = shard.streams().findId(stream);
        if (known.isPresent()) {
            return known.getAsInt();
        }
        try {
            return shard.streams().ensure(stream);
        } catch (UnknownStreamException e) {
            throw dropped(stream, e);
        } catch (SQLException e) {
            if (!SqlErrors.state(e).equals(SqlErrors.STREAM_BEING_DELETED)) {
                throw e;
            }
            UnknownStreamException unknown = new UnknownStreamException(stream.name());
            unknown.addSuppressed(e);
            throw dropped(stream, unknown);
        }
    }

    private SQLException dropped(StreamSpec stream, UnknownStreamException cause) {
        context.streams().forget(stream.name());
        return new SQLException("the stream was dropped", SqlErrors.NO_PARTITION, cause);
    }

    private long[] execute(Connection connection, Batch batch, List<PartitionGroup> groups) throws SQLException {
        running = new RunningStatement(connection, System.nanoTime());
        try {
            return GroupAppend.execute(shard, connection, context.producer(), batch.number(), incarnation, groups);
        } finally {
            running = null;
        }
    }

    private ExpectedAppendStatement.Outcome executeExpected(
            Connection connection, Batch batch, List<PartitionGroup> groups, ExpectedSteps steps) throws SQLException {
        running = new RunningStatement(connection, System.nanoTime());
        try {
            return shard.tables()
                    .appendExpected()
                    .execute(
                            connection,
                            context.producer(),
                            batch.number(),
                            MapFence.of(PartitionGroup.mapVersions(groups)),
                            incarnation,
                            PartitionGroup.toRows(groups),
                            steps.toStatement());
        } finally {
            running = null;
        }
    }

    /** Returns the incarnation of the database that the last attempt was for: that of the ids of its streams. */
    String incarnation() {
        return incarnation;
    }

    /**
     * Compares what is remembered of the database, after it has rejected the last attempt because it has another incarnation.
     *
     * @return whether statements use another incarnation now
     */
    boolean recheckIncarnation() throws SQLException {
        shard.recheckIncarnation(incarnation);
        return !shard.incarnation().equals(incarnation);
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
        // On a thread of its own: closing a TLS connection may wait for the write that hangs, and the caller has other
        // tasks.
        Thread.ofPlatform().daemon().name("eventsql-abort-" + shard.name()).start(() -> abort(hung.connection()));
    }

    private static void abort(Connection connection) {
        try {
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            LOG.debug("The connection was returned to its pool before it could be aborted", e);
        }
    }
}
