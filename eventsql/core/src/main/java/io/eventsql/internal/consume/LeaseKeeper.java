package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.Settings;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.LeaseTable.Answer;
import io.eventsql.internal.sql.LeaseTable.Beat;
import io.eventsql.internal.sql.LeaseTable.Taken;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the leases of one shard for all members of this process: one platform thread, one heartbeat for all. The
 * heartbeat renews what members hold and says what they should hold; then they take what nobody holds, up to their
 * share, and give back what is above it once its handler has finished the event it is at. A member that is closed gives
 * back all in the same way.
 *
 * <p>It beats every {@link Settings#heartbeat()}; when another member's lease expires; and at once when members come or
 * go, of which those who do so send a signal.
 */
final class LeaseKeeper implements WakeUp.Target {
    private static final Logger LOG = LoggerFactory.getLogger(LeaseKeeper.class);
    private static final long RETRY_MAX_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** A lease is taken so long after its end, because it is the database that must have passed it. */
    private static final long AFTER_EXPIRY_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    /** When others were quicker to take what was free, it is looked at again so much later. */
    private static final long TAKE_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    /** While a commit of the member is under way, what has drained is given back so much later. */
    private static final long RELEASE_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    /** A member that closes tries once more to say so, after this: a connection may just have broken. */
    private static final long LEAVE_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final Shard shard;
    private final Duration lease;
    private final long heartbeatNanos;
    private final long networkTimeoutNanos;
    /** No answer until then: there is time for a second heartbeat on another connection before the lease ends. */
    private final Duration answerTimeout;

    private final WakeUp wakeUp;
    private final MemberDeregistration leaving;
    private final List<ShardMember> members = new CopyOnWriteArrayList<>();
    private final Thread thread;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private boolean beatWanted;
    private boolean releaseWanted;
    private volatile boolean closed;

    private long beatAt = System.nanoTime();
    private int failures;
    private @Nullable String history;

    LeaseKeeper(Shard shard, Settings settings, WakeUp wakeUp) {
        this.shard = shard;
        this.lease = settings.lease();
        this.heartbeatNanos = settings.heartbeat().toNanos();
        this.networkTimeoutNanos = settings.networkTimeout().toNanos();
        this.answerTimeout = lease.minus(settings.heartbeat()).dividedBy(2);
        this.leaving = new MemberDeregistration(shard, answerTimeout, wakeUp);
        this.wakeUp = wakeUp;
        this.thread = new Thread(this::run, "eventsql-lease-" + shard.name());
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** The member takes part from now on; others learn of it, and give back what is above their share. */
    void add(ShardMember member) {
        members.add(member);
        beatSoon();
    }

    /**
     * The member takes nothing more. What it holds it gives back as its handlers end, and keeps its leases until then;
     * when all have ended, it is gone.
     */
    void beginLeave(ShardMember member) {
        member.close();
        beatSoon();
    }

    /**
     * Waits until the member is gone. At the deadline it goes in any case: the leases of partitions whose handlers have
     * not ended run out.
     *
     * @return whether all handlers have ended
     */
    boolean awaitLeft(ShardMember member, long deadlineNanos) throws InterruptedException {
        if (thread.equals(Thread.currentThread())) { // a listener closes it
            member.leaveNow();
            endClosed();
        } else if (!member.awaitLeft(deadlineNanos)) {
            member.leaveNow();
            signal(false);
            member.awaitLeft(System.nanoTime() + networkTimeoutNanos);
        }
        return member.hasEnded();
    }

    /** A partition that drains has nothing left to do: it can be given back. */
    void drained() {
        signal(false);
    }

    @Override
    public void consumerChanged(int consumerId) {
        if (members.stream().anyMatch(member -> member.consumerId() == consumerId)) {
            beatSoon();
        }
    }

    @Override
    public void wakeAll() {
        beatSoon();
    }

    void beatSoon() {
        signal(true);
    }

    private void signal(boolean beat) {
        lock.lock();
        try {
            beatWanted |= beat;
            releaseWanted = true;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        try {
            while (!closed) {
                boolean beat = awaitBeatOrRelease();
                try {
                    endClosed();
                    if (beat && members.isEmpty()) {
                        beatAt = System.nanoTime() + heartbeatNanos; // nobody has anything to renew
                    } else if (beat) {
                        beat();
                    }
                    releaseDrained();
                    endClosed();
                    failures = 0;
                } catch (SQLException | RuntimeException e) { // the one thread of all members must go on
                    retryLater(e);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns whether a heartbeat is due. */
    private boolean awaitBeatOrRelease() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (!beatWanted && !releaseWanted && !closed && beatAt - System.nanoTime() > 0) {
                changed.awaitNanos(beatAt - System.nanoTime());
            }
            boolean beat = beatWanted || beatAt - System.nanoTime() <= 0;
            beatWanted = false;
            releaseWanted = false;
            return beat;
        } finally {
            lock.unlock();
        }
    }

    private Database database() throws SQLException {
        return shard.require().answeringWithin(answerTimeout);
    }

    private void beat() throws SQLException {
        long askedAt = System.nanoTime();
        beatAt = askedAt + heartbeatNanos;
        List<ShardMember> asked = List.copyOf(members);
        List<List<OwnedPartition>> held =
                asked.stream().map(ShardMember::partitions).toList();
        List<Beat> beats = asked.stream()
                .map(member -> member.beat(member.member().name()))
                .toList();
        List<Answer> answers =
                database().call(connection -> shard.tables().leases().beat(connection, shard.number(), lease, beats));
        if (answers.size() < asked.size()) {
            endDeleted(asked, answers);
        }
        for (Answer answer : answers) {
            ShardMember member = asked.get(answer.member());
            checkHistory(answer.history());
            if (member.isFirstAnswer()) { // only now others can see it
                wakeUp.consumerChanged(shard, member.consumerId());
            }
            keepRenewed(member, held.get(answer.member()), beats.get(answer.member()), answer, askedAt);
            giveBackSurplus(member, answer);
            if (answer.nextExpiryMs() != null) {
                long expiry = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(answer.nextExpiryMs());
                beatAt = Math.min(beatAt, expiry + AFTER_EXPIRY_NANOS);
            }
        }
        for (Answer answer : answers) { // when all know what they still have: taking may fail
            takeFree(asked.get(answer.member()), answer);
        }
    }

    /** What was not renewed is lost: it was moved, or another member has taken it. */
    private void keepRenewed(ShardMember member, List<OwnedPartition> held, Beat beat, Answer answer, long askedAt) {
        for (OwnedPartition partition : held) {
            if (answer.renewed().contains(partition.partition())) {
                partition.renewedUntil(askedAt + lease.toNanos());
                if (answer.ending().contains(partition.partition())) {
                    partition.drain();
                } else if (answer.toRedrive().contains(partition.partition()) && partition.wantRedrive()) {
                    member.member().dispatcher().start(member, partition);
                }
            } else if (beat.held().contains(partition.partition())) {
                LOG.info("{} is no longer held", member.name(partition));
                member.remove(partition, Reason.LOST);
            } else if (!partition.isGivenUp()) {
                reportTimeout(member, partition);
            }
        }
    }

    private static void reportTimeout(ShardMember member, OwnedPartition partition) {
        Duration running = Duration.ofNanos(partition.longestCallNanos());
        LOG.error(
                "The handler of {} has been running for {}, longer than consumer.handlerTimeout {}: the partition moves",
                member.name(partition),
                running,
                member.spec().handlerTimeout());
        member.listeners().tell(l -> l.handlerTimedOut(member.name(partition), running));
        member.remove(partition, Reason.LOST);
    }

    private void giveBackSurplus(ShardMember member, Answer answer) {
        List<OwnedPartition> holding =
                member.partitions().stream().filter(p -> !p.isDraining()).toList();
        for (int i = answer.share(); i < holding.size(); i++) {
            holding.get(i).drain();
        }
    }

    private void takeFree(ShardMember member, Answer answer) throws SQLException {
        int wanted = answer.share() - member.partitions().size();
        List<Integer> except = member.notToTake();
        if (wanted <= 0 || answer.free() == 0) {
            return;
        }
        long askedAt = System.nanoTime();
        var tables = shard.tables();
        record Result(List<Taken> taken, Map<Integer, Set<String>> parkedKeys) {}
        Result result = database().transaction(connection -> {
            List<Taken> taken =
                    tables.leases().take(connection, member.consumerId(), member.memberId(), lease, wanted, except);
            List<Integer> numbers = taken.stream().map(Taken::partition).toList();
            return new Result(taken, tables.parkedEvents().parkedKeys(connection, member.consumerId(), numbers));
        });
        if (result.taken().size() < wanted) {
            beatAt = Math.min(beatAt, System.nanoTime() + Math.min(TAKE_AGAIN_NANOS, heartbeatNanos));
        }
        if (result.taken().isEmpty()) {
            return;
        }
        LOG.debug("{} took {} of {}", member.member().name(), result.taken(), member.spec());
        for (Taken one : result.taken()) { // before its first event may be handled
            member.listeners().tell(l -> l.partitionAssigned(member.name(one.partition()), one.nextOffset()));
        }
        if (!member.add(result.taken(), result.parkedKeys(), askedAt + lease.toNanos())) {
            release(member, result.taken().stream().map(Taken::partition).toList());
            for (Taken one : result.taken()) {
                member.listeners().tell(l -> l.partitionRevoked(member.name(one.partition()), Reason.RELEASED));
            }
            return;
        }
        member.threads().fetcher().signal();
        beatSoon(); // what was taken may have events to be redriven
    }

    /** Commits and gives back partitions that drain and whose handler is not at work any more. */
    private void releaseDrained() throws SQLException {
        for (ShardMember member : members) {
            List<OwnedPartition> drained = member.partitions().stream()
                    .filter(p -> p.isDraining() && !p.isHandling())
                    .toList();
            if (!drained.isEmpty() && !member.threads().committer().tryCommit(member)) {
                beatAt = Math.min(beatAt, System.nanoTime() + RELEASE_AGAIN_NANOS); // heartbeats wait for no commit
            } else if (!drained.isEmpty()) {
                release(member, drained.stream().map(OwnedPartition::partition).toList());
                drained.forEach(partition -> member.remove(partition, Reason.RELEASED));
            }
        }
    }

    /** Frees partitions and tells the other members. */
    void release(ShardMember member, Collection<Integer> partitions) throws SQLException {
        database().call(connection -> {
            shard.tables().leases().release(connection, member.consumerId(), member.memberId(), partitions);
            return partitions;
        });
        wakeUp.consumerChanged(shard, member.consumerId());
    }

    /** Members that are closed, and whose handlers have ended or are not waited for any longer, go. */
    private void endClosed() {
        for (ShardMember member : members) {
            if (member.mayLeave()) {
                if (leaving.leave(member)) {
                    remove(member, Reason.RELEASED);
                } else {
                    beatAt = Math.min(beatAt, System.nanoTime() + LEAVE_AGAIN_NANOS);
                }
            }
        }
    }

    private void remove(ShardMember member, Reason reason) {
        members.remove(member);
        member.threads().fetcher().remove(member);
        member.partitions().forEach(partition -> member.remove(partition, reason));
        member.left();
    }

    private void endDeleted(List<ShardMember> asked, List<Answer> answers) {
        List<Integer> answered = answers.stream().map(Answer::member).toList();
        for (int i = 0; i < asked.size(); i++) {
            if (!answered.contains(i)) {
                ShardMember gone = asked.get(i);
                LOG.warn(
                        "Consumer {} of stream {} was deleted on {}",
                        gone.spec().name(),
                        gone.spec().stream(),
                        shard);
                gone.close();
                remove(gone, Reason.LOST);
            }
        }
    }

    /** After a failover the log may lack what it had: pages fetched before count no more. */
    private void checkHistory(String now) {
        String before = history;
        history = now;
        if (before != null && !before.equals(now)) {
            LOG.warn("The history of {} has changed from {} to {}: fetched pages are dropped", shard, before, now);
            for (ShardMember member : members) {
                member.partitions().forEach(OwnedPartition::forgetPage);
                member.threads().fetcher().lookNow();
            }
        }
    }

    private void retryLater(Exception e) {
        long delay = Math.min(
                Math.min(RETRY_MAX_NANOS, heartbeatNanos), TimeUnit.MILLISECONDS.toNanos(50) << Math.min(failures, 10));
        beatAt = System.nanoTime() + delay;
        if (failures++ == 0) {
            LOG.warn("The heartbeat on {} failed, is tried again: {}", shard, e.toString());
        } else {
            LOG.debug("The heartbeat on {} still fails", shard, e);
        }
    }

    void close() throws InterruptedException {
        closed = true;
        signal(false);
        thread.join(TimeUnit.SECONDS.toMillis(1));
        thread.interrupt();
    }
}
