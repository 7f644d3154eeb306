package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits the offsets of one member on one shard, all its partitions in one statement, alone or with other members ({@link
 * SharedCommit}), about once in its commit interval. Rule 4 (Commit): the database compares epoch and previous offset; a commit that it refuses means that the
 * partition was lost. The assignment then ends, and nothing more of it is handled or reported. Thread-safe.
 */
final class OffsetCommitter {
    private static final Logger LOG = LoggerFactory.getLogger(OffsetCommitter.class);

    private final Shard shard;
    private final ShardMember member;
    private final CommitThread thread;
    private final HeartbeatSchedule heartbeats;
    /** Held while offsets are committed: commits of one member follow one another. Heartbeats never wait for it. */
    private final ReentrantLock lock = new ReentrantLock();
    /** Whether a commit was rejected because the database had another incarnation. */
    private final AtomicBoolean isPostponed = new AtomicBoolean();

    OffsetCommitter(Shard shard, ShardMember member, CommitThread thread, HeartbeatSchedule heartbeats) {
        this.shard = shard;
        this.member = member;
        this.thread = thread;
        this.heartbeats = heartbeats;
    }

    /** Requests a commit of what the member has handled; it is done within the commit interval. */
    void request() {
        thread.request(this, member.spec().commitInterval());
    }

    /** Requests what was rejected in another incarnation of the database, which has answered in that of the member since. */
    void requestPostponed() {
        if (isPostponed.compareAndSet(true, false)) {
            request();
        }
    }

    /**
     * What a member has handled and not committed.
     *
     * @param taker who has taken the partitions
     */
    record Uncommitted(Membership taker, List<Handled> handled) {}

    /** Commits now what the member has handled. */
    void commit() throws SQLException {
        commit(shard.require());
    }

    /** Returns whether it was done: not if the database has another incarnation, whose rows are to be compared first. */
    private boolean commit(Database database) throws SQLException {
        lock.lock();
        try {
            Uncommitted own = uncommitted();
            if (own.handled().isEmpty()) {
                return true;
            }
            Membership taker = own.taker();
            Set<Integer> committed;
            try {
                committed = database.call(connection -> shard.tables()
                        .offsets()
                        .commit(connection, taker.incarnation(), taker.consumerId(), own.handled()));
            } catch (SQLException e) {
                if (!isOfOtherIncarnation(e, taker.incarnation())) {
                    throw e;
                }
                return false;
            }
            record(own, committed);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Begins a commit that another object makes, unless one is under way; {@link #end} ends it. */
    boolean tryBegin() {
        return lock.tryLock();
    }

    /** Ends a commit that {@link #tryBegin} has begun. */
    void end() {
        lock.unlock();
    }

    /** Returns what is to be committed, within a commit. */
    Uncommitted uncommitted() {
        Membership taker = member.membership();
        return new Uncommitted(taker, member.uncommitted(taker));
    }

    /** Records what of it was committed, within the commit; the others were lost. */
    void record(Uncommitted own, Set<Integer> committed) throws SQLException {
        for (Handled one : own.handled()) {
            if (committed.contains(one.partition())) {
                member.assignment(one.partition())
                        .filter(assignment -> assignment.epoch() == one.epoch()) // or it was taken anew
                        .ifPresent(assignment -> assignment.recordCommitted(one.toOffset()));
            }
        }
        if (committed.size() < own.handled().size()) {
            reconcile();
        }
    }

    /**
     * Commits now what the member has handled, unless another commit of it is under way, or the database has another
     * incarnation: the lease keeper then compares what is stored, before anything is committed or released.
     *
     * @param timeout how long to wait for the database at most
     * @return whether it was done
     */
    boolean tryCommit(Duration timeout) throws SQLException {
        if (!lock.tryLock()) {
            return false;
        }
        try {
            return commit(shard.require().withNetworkTimeout(timeout));
        } finally {
            lock.unlock();
        }
    }

    /** The outcome of a commit together with other statements. */
    enum Commit {
        STORED,
        /** Nothing was done, because the offset is committed already: by an earlier attempt, or with what a handler has written. */
        PASSED_BEFORE,
        /** Rolled back: another offset is stored, or the partition was lost. */
        REFUSED,
        /** Rolled back: the database has another incarnation, in which the assignment will continue or end. */
        OTHER_INCARNATION
    }

    /**
     * Commits the offset of one partition together with other statements, in one transaction that ends with the fenced
     * commit.
     *
     * @param first the offset of the first event that counts as handled with it
     * @param next the offset after the last one
     * @return the outcome; after {@link Commit#REFUSED} the assignment has ended if it is lost
     */
    Commit commitWith(Assignment assignment, long first, long next, TransactionStep step) throws SQLException {
        lock.lock();
        try {
            if (next > first && assignment.committedOffset() >= next) {
                return Commit.PASSED_BEFORE;
            }
            Handled handled = assignment.progressWith(first, next);
            boolean committed;
            try {
                committed = shard.require().transactionIf(connection -> {
                    step.run(connection);
                    return !shard.tables()
                            .offsets()
                            .commit(connection, assignment.incarnation(), assignment.consumerId(), List.of(handled))
                            .isEmpty();
                });
            } catch (SQLException e) {
                if (!isOfOtherIncarnation(e, assignment.incarnation())) {
                    throw e;
                }
                return Commit.OTHER_INCARNATION;
            }
            if (!committed) {
                reconcile();
                return Commit.REFUSED;
            }
            assignment.recordCommitted(handled.toOffset());
            return Commit.STORED;
        } finally {
            lock.unlock();
        }
    }

    /** Ends an assignment that no longer fits what is stored; the partition is taken anew from its stored offset. */
    void lose(Assignment assignment, String why) {
        LOG.warn("Lost {}: {}; taking it anew from its stored offset", assignment.name(), why);
        member.remove(assignment, Reason.LOST);
        heartbeats.requestHeartbeat();
    }

    /**
     * Compares all assignments with the stored offsets, after a commit was refused or its answer was lost. Those whose
     * epoch is another one now are lost, also those with nothing to commit. Where the epoch is unchanged, an earlier
     * commit whose answer was lost has been stored, so the stored offset counts. An epoch or an offset lower than the
     * member's own means that the database went back in time.
     */
    void reconcile() throws SQLException {
        lock.lock();
        try {
            Membership taker = member.membership();
            // Before the offsets: these lack what is taken later, and may lack what handlers commit in between.
            Map<Assignment, Long> committed = new LinkedHashMap<>();
            member.assignments().stream()
                    .filter(assignment -> assignment.isOf(taker))
                    .forEach(assignment -> committed.put(assignment, assignment.committedOffset()));
            List<Offset> stored;
            try {
                stored = shard.require()
                        .call(connection -> shard.tables()
                                .consumers()
                                .offsets(connection, taker.incarnation(), taker.consumerId()));
            } catch (SQLException e) {
                if (!isOfOtherIncarnation(e, taker.incarnation())) {
                    throw e;
                }
                return;
            }
            committed.forEach((assignment, offset) -> compare(assignment, offset, stored));
        } finally {
            lock.unlock();
        }
        request();
        heartbeats.requestHeartbeat();
    }

    private void compare(Assignment assignment, long committed, List<Offset> stored) {
        Optional<Offset> offset = stored.stream()
                .filter(o -> o.partition() == assignment.partition())
                .findFirst();
        long epoch = offset.map(Offset::epoch).orElse(Long.MAX_VALUE);
        long next = offset.map(Offset::nextOffset).orElse(committed);
        if (epoch < assignment.epoch() || (epoch == assignment.epoch() && next < committed)) {
            member.removeAfterLoss(assignment, next, committed);
        } else if (epoch == assignment.epoch()) {
            assignment.recordCommitted(next);
        } else {
            LOG.info("Lost {}: its epoch has changed; handling no more of its events", assignment.name());
            member.remove(assignment, Reason.LOST);
        }
    }

    /**
     * Returns whether a statement was rejected because the database has another incarnation. If so, the lease keeper lets
     * the assignments of the former one continue, and then requests a commit, or ends them; or the next answer came from the
     * former one, because there are two servers.
     */
    boolean isOfOtherIncarnation(Throwable failure, String used) throws SQLException {
        if (!shard.recheckAfter(failure, used)) {
            return false;
        }
        isPostponed.set(true);
        heartbeats.requestHeartbeat();
        return true;
    }
}
