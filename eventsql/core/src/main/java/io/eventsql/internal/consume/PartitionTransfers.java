package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes free partitions of one shard for members, releases those that are drained, and lets members leave. Called by
 * the lease keeper's thread alone: a heartbeat after a member has left would make it count again.
 */
final class PartitionTransfers {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionTransfers.class);

    private final Shard shard;
    private final Duration lease;
    private final Duration answerTimeout;
    private final WakeUp wakeUp;
    private final Listeners listeners;
    /** The number of partitions to take at once: after a failure half as many, because it may have taken too long. */
    private int takeMax = Integer.MAX_VALUE;

    PartitionTransfers(Shard shard, Duration lease, Duration answerTimeout, WakeUp wakeUp, Listeners listeners) {
        this.shard = shard;
        this.lease = lease;
        this.answerTimeout = answerTimeout;
        this.wakeUp = wakeUp;
        this.listeners = listeners;
    }

    private Database database() throws SQLException {
        return shard.require().withNetworkTimeout(answerTimeout);
    }

    /**
     * Rule 1 (Take): takes free partitions, in one transaction that raises their epochs and reads their offsets and
     * parked keys.
     *
     * @return how many were taken; {@code 0} if the member closes, which has released them again
     */
    int take(ShardMember member, int wanted) throws SQLException {
        int number = Math.min(wanted, takeMax);
        try {
            int taken = takeAtOnce(member, number);
            takeMax = takeMax > Integer.MAX_VALUE / 2 ? Integer.MAX_VALUE : 2 * takeMax;
            return taken;
        } catch (SQLException | RuntimeException e) {
            takeMax = Math.max(1, number / 2);
            throw e;
        }
    }

    private int takeAtOnce(ShardMember member, int wanted) throws SQLException {
        Membership membership = member.membership();
        List<Integer> except = member.notToTake();
        long sentAt = System.nanoTime();
        var tables = shard.tables();
        record Result(List<TakenPartition> taken, Map<Integer, Set<String>> parkedKeys) {}
        Result result = database().transaction(connection -> {
            List<TakenPartition> taken = tables.leases()
                    .take(
                            connection,
                            membership.incarnation(),
                            membership.consumerId(),
                            membership.memberId(),
                            lease,
                            wanted,
                            except);
            parkInherited(connection, membership, partitions(taken));
            return new Result(
                    taken, tables.parkedEvents().parkedKeys(connection, membership.consumerId(), partitions(taken)));
        });
        List<TakenPartition> taken = result.taken();
        if (taken.isEmpty()) {
            return 0;
        }
        LOG.debug("{} took {} of {}", membership.memberName(), taken, membership.spec());
        for (TakenPartition one : taken) { // before its first event may be handled
            listeners.call(l -> l.partitionAssigned(membership.partition(one.partition()), one.nextOffset()));
        }
        // Counted from before the request, so the lease ends here before it ends in the database.
        if (member.add(taken, result.parkedKeys(), sentAt + lease.toNanos())) {
            return taken.size();
        }
        release(member, partitions(taken));
        for (TakenPartition one : taken) {
            listeners.call(l -> l.partitionRevoked(membership.partition(one.partition()), Reason.RELEASED));
        }
        return 0;
    }

    /**
     * Parks the keys of taken partitions whose earlier events are parked in the partitions from which the keys have moved, also
     * keys that have moved on in the meantime.
     */
    private void parkInherited(Connection connection, Membership membership, List<Integer> taken) {
        var parked = shard.tables().parkedEvents();
        int firstPartitions = membership.stream().partitions();
        parked.inheritedKeys(connection, membership.consumerId(), taken).forEach((partition, keys) -> {
            List<String> candidates = List.copyOf(keys);
            List<Long> hashes = candidates.stream().map(KeyHash::of).toList();
            parked.parkOwnKeys(
                    connection,
                    membership.consumerId(),
                    membership.streamId(),
                    partition,
                    candidates,
                    hashes.stream()
                            .map(hash -> PartitionMap.slot(hash, firstPartitions))
                            .toList(),
                    hashes.stream().map(KeyHash::slot).toList());
        });
    }

    private static List<Integer> partitions(List<TakenPartition> taken) {
        return taken.stream().map(TakenPartition::partition).toList();
    }

    /**
     * Rule 5 (Release): commits and releases the partitions that are drained.
     *
     * @return {@code false} if that must wait, because another commit of the member is under way, or because the database
     *     has another incarnation
     */
    boolean releaseDrained(ShardMember member, OffsetCommitter committer) throws SQLException {
        List<Assignment> drained = member.assignments().stream()
                .filter(assignment -> assignment.isDraining() && !assignment.isHandling())
                .toList();
        if (drained.isEmpty()) {
            return true;
        }
        if (!committer.tryCommit(answerTimeout)) {
            return false;
        }
        release(member, drained.stream().map(Assignment::partition).toList());
        drained.forEach(assignment ->
                member.remove(assignment, assignment.isContinued() ? Reason.HISTORY_CHANGED : Reason.RELEASED));
        return true;
    }

    private void release(ShardMember member, Collection<Integer> partitions) throws SQLException {
        database().call(connection -> {
            shard.tables().leases().release(connection, member.consumerId(), member.memberId(), partitions);
            return partitions;
        });
        wakeUp.consumerChanged(shard, member.consumerId());
    }

    /**
     * Rule 6 (Leave): commits, releases the partitions whose handlers have ended, and deletes the member's row.
     *
     * @return {@code false} if it is to be repeated: another commit of the member is under way, or the database has
     *     another incarnation; or it failed, then once: a connection may just have broken
     */
    boolean leave(ShardMember member, OffsetCommitter committer) {
        try {
            return commitAndLeave(member, committer);
        } catch (SQLException | RuntimeException e) {
            if (member.allowLastAttempt()) {
                return false;
            }
            LOG.warn(
                    "Committing the last offsets of consumer {} on {} failed; its next owners repeat events: {}",
                    member.spec().name(),
                    shard,
                    e.toString());
        }
        return true;
    }

    private boolean commitAndLeave(ShardMember member, OffsetCommitter committer) throws SQLException {
        List<Integer> drained = member.assignments().stream()
                .filter(assignment -> !assignment.isHandling())
                .map(Assignment::partition)
                .toList();
        if (!committer.tryCommit(answerTimeout)) {
            return false;
        }
        database().call(connection -> {
            shard.tables().leases().release(connection, member.consumerId(), member.memberId(), drained);
            return drained;
        });
        database().transaction(connection -> {
            shard.tables().leases().leave(connection, member.consumerId(), member.memberId());
            return drained;
        });
        wakeUp.consumerChanged(shard, member.consumerId());
        return true;
    }
}
