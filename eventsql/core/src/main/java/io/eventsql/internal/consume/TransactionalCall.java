package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.OffsetTable;
import io.eventsql.internal.sql.OffsetTable.Handled;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;

/**
 * Exactly once: what the handler writes and the offset are committed together. The fenced commit of the offset is the
 * transaction's last statement: a former holder finds that it has lost the partition, and everything is rolled back.
 *
 * <p>A holder frozen in its transaction keeps locks. Whoever takes the partition ends that transaction; where that is
 * not permitted, the server ends it when nothing was sent for the handler's time-out, or for the lease once the offset is
 * committed in it.
 */
record TransactionalCall(
        boolean takesBatches, TransactionalEventBatchHandler handler, HandlerTransactions transactions, Duration lease)
        implements HandlerCall {
    @Override
    public boolean isTransactional() {
        return true;
    }

    @Override
    public void call(ShardMember member, OwnedPartition partition, List<StoredEvent> events, Step alsoCommit)
            throws Exception {
        Shard shard = member.shard();
        long first = events.getFirst().offset();
        long next = events.getLast().offset() + 1;
        boolean again = !alsoCommit.equals(Step.NONE); // it was set aside before, its offset was passed
        if (!again && next <= partition.committedOffset()) {
            return; // an earlier commit whose answer never came was stored after all
        }
        boolean[] asked = {false};
        try {
            // From these events' own offset: what is known to be committed may change at any moment.
            Handled handled =
                    again ? partition.progress() : new Handled(partition.partition(), partition.epoch(), first, next);
            boolean committed = transactions.run(shard, connection -> {
                OffsetTable offsets = shard.tables().offsets();
                String token = UUID.randomUUID().toString();
                beginHandling(connection, member, partition, token);
                handler.handle(events, HandlerConnection.guard(connection));
                Thread.interrupted(); // left by the handler: it would close the connection
                alsoCommit.run(connection);
                asked[0] = true;
                return offsets.commitHandled(connection, member.consumerId(), handled, token, lease.toMillis());
            });
            if (committed) {
                partition.committed(handled.toOffset());
                return;
            }
        } catch (Exception e) {
            if (e instanceof SQLException sql && SqlErrors.state(sql).equals(SqlErrors.NOT_PARKED)) {
                return; // handled again already: everything was rolled back
            }
            boolean isOfHandler = !asked[0] && !(e instanceof SQLException);
            if (isOfHandler) {
                throw e;
            }
            if (asked[0] && !again && isStored(member, partition, next, e)) {
                return;
            }
            if (partition.isGivenUp()) {
                throw new LostException("lost while its events were handled: everything was rolled back");
            }
            if (e instanceof Database.UnavailableException) {
                throw new NotHandledException("the database is away: " + e.getMessage(), e);
            }
            throw e;
        }
        // Refused: lost, or an earlier commit whose answer never came was stored after all.
        member.threads().committer().checkRefused(member);
        if (partition.isGivenUp()) {
            throw new LostException("lost while its events were handled: everything was rolled back");
        }
        if (again || partition.committedOffset() < next) {
            throw new NotHandledException(
                    "the offset had changed: everything was rolled back", new SQLException("commit refused", "40001"));
        }
    }

    private void beginHandling(Connection connection, ShardMember member, OwnedPartition partition, String token)
            throws SQLException, NotHandledException {
        Shard shard = member.shard();
        OffsetTable offsets = shard.tables().offsets();
        long idleMs = member.spec().handlerTimeout().toMillis();
        if (!transactions.areForeign()) {
            offsets.beginHandling(connection, member.consumerId(), partition.partition(), token, idleMs);
            return;
        }
        boolean isShard;
        try {
            isShard = offsets.beginHandlingOn(
                    shard.clusterId(),
                    shard.number(),
                    connection,
                    member.consumerId(),
                    partition.partition(),
                    token,
                    idleMs);
        } catch (SQLException e) { // a database without the tables says so
            throw new NotHandledException("the transaction could not be begun on " + shard + ": " + e.getMessage(), e);
        }
        if (!isShard) {
            throw new NotHandledException(
                    "the transaction boundary gave a connection to another database than that of " + shard);
        }
    }

    /** After a commit that failed: whether it was stored all the same. */
    private static boolean isStored(ShardMember member, OwnedPartition partition, long next, Exception failure) {
        try {
            member.threads().committer().checkRefused(member);
        } catch (SQLException e) {
            failure.addSuppressed(e); // found out by the next attempt
            return false;
        }
        return partition.committedOffset() >= next;
    }
}
