package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.internal.consume.HandlerCall.Step;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits the offsets of one shard for all members of this process: one platform thread, one statement for all
 * partitions of a member, not more often than the member's commit interval. A commit that the database refuses means
 * that the partition was lost: it is given up, and nothing more of it is handled or reported.
 */
final class OffsetCommitter {
    private static final Logger LOG = LoggerFactory.getLogger(OffsetCommitter.class);

    private final Shard shard;
    /** Members with something to commit, and when that is due (nano time). */
    private final Map<ShardMember, Long> due = new ConcurrentHashMap<>();

    private final Thread thread;
    private volatile boolean closed;

    OffsetCommitter(Shard shard) {
        this.shard = shard;
        this.thread = new Thread(this::run, "eventsql-commit-" + shard.name());
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Says that a member has handled something: it is committed within its commit interval. */
    void request(ShardMember member) {
        if (!due.containsKey(member)) {
            long at = System.nanoTime() + member.spec().commitInterval().toNanos();
            if (due.putIfAbsent(member, at) == null) {
                LockSupport.unpark(thread);
            }
        }
    }

    private void run() {
        while (!closed) {
            long now = System.nanoTime();
            long next = Long.MAX_VALUE;
            for (Map.Entry<ShardMember, Long> entry : List.copyOf(due.entrySet())) {
                long left = entry.getValue() - now;
                if (left <= 0) {
                    due.remove(entry.getKey()); // before committing: what is handled meanwhile is requested anew
                    commitOrRetry(entry.getKey());
                } else {
                    next = Math.min(next, left);
                }
            }
            if (next == Long.MAX_VALUE && due.isEmpty()) {
                LockSupport.park(this);
            } else {
                LockSupport.parkNanos(this, next == Long.MAX_VALUE ? 0 : next);
            }
        }
    }

    private void commitOrRetry(ShardMember member) {
        try {
            commit(member);
        } catch (SQLException | RuntimeException e) { // the one thread of all members must go on
            LOG.warn("Offsets on {} could not be committed, tried again: {}", shard, e.toString());
            due.putIfAbsent(member, System.nanoTime() + TimeUnit.SECONDS.toNanos(1));
        }
    }

    /** Commits now what the member has handled. */
    void commit(ShardMember member) throws SQLException {
        member.commitLock().lock();
        try {
            List<Handled> handled = member.toCommit();
            if (handled.isEmpty()) {
                return;
            }
            Set<Integer> committed = shard.require()
                    .call(connection -> shard.tables().offsets().commit(connection, member.consumerId(), handled));
            for (Handled one : handled) {
                if (committed.contains(one.partition())) {
                    member.partition(one.partition())
                            .filter(partition -> partition.epoch() == one.epoch()) // not taken anew meanwhile
                            .ifPresent(partition -> partition.committed(one.toOffset()));
                }
            }
            if (committed.size() < handled.size()) {
                checkRefused(member);
            }
        } finally {
            member.commitLock().unlock();
        }
    }

    /**
     * The same, if no other commit of the member is under way.
     *
     * @return whether it was done
     */
    boolean tryCommit(ShardMember member) throws SQLException {
        if (!member.commitLock().tryLock()) {
            return false;
        }
        try {
            commit(member);
            return true;
        } finally {
            member.commitLock().unlock();
        }
    }

    /**
     * Commits the offset of one partition together with other things, in one transaction that ends with the fenced
     * commit.
     *
     * @param first the first of the events that count as handled with it
     * @param next the offset behind the last of them
     * @return {@code false} if it was refused: everything was rolled back; the partition is given up if it is lost
     */
    boolean commitWith(ShardMember member, OwnedPartition partition, long first, long next, Step step)
            throws SQLException {
        member.commitLock().lock();
        try {
            if (next > first && partition.committedOffset() >= next) {
                return true; // an earlier attempt whose answer never came was stored after all
            }
            Handled handled = partition.progressWith(first, next);
            boolean committed = shard.require().transactionIf(connection -> {
                step.run(connection);
                return !shard.tables()
                        .offsets()
                        .commit(connection, member.consumerId(), List.of(handled))
                        .isEmpty();
            });
            if (!committed) {
                checkRefused(member);
                return false;
            }
            partition.committed(handled.toOffset());
            return true;
        } finally {
            member.commitLock().unlock();
        }
    }

    /**
     * After a refused commit: what has another epoch now is lost, partitions with nothing to commit included. Where the
     * epoch is still ours, an earlier commit whose answer never came has been stored after all.
     */
    void checkRefused(ShardMember member) throws SQLException {
        member.commitLock().lock();
        try {
            List<OwnedPartition> held = member.partitions(); // before the offsets: what is taken later is not in them
            List<Offset> stored = shard.require()
                    .call(connection -> shard.tables().consumers().offsets(connection, member.consumerId()));
            for (OwnedPartition partition : held) {
                Optional<Offset> offset = stored.stream()
                        .filter(o -> o.partition() == partition.partition() && o.epoch() == partition.epoch())
                        .findFirst();
                if (offset.isPresent()) {
                    partition.committed(offset.get().nextOffset());
                } else {
                    LOG.info("{} was lost: another member has taken it", member.name(partition));
                    member.remove(partition, Reason.LOST);
                }
            }
        } finally {
            member.commitLock().unlock();
        }
        request(member);
        member.threads().keeper().beatSoon();
    }

    void close() throws InterruptedException {
        closed = true;
        LockSupport.unpark(thread);
        thread.join(TimeUnit.SECONDS.toMillis(1));
    }
}
