package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.Settings;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.LeaseTable.HeartbeatReply;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUp;
import io.eventsql.internal.wake.WakeUpTarget;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the leases of one shard for all members of this process: one platform thread, one heartbeat for all, or for many ({@link
 * HeartbeatTurns}). The heartbeat renews leases and returns each member's share; then members take free partitions, up to their share, and
 * release what is above it once the handler has finished its current event. A member that closes releases all of them
 * in the same way.
 *
 * <p>A heartbeat is sent every {@link Settings#heartbeat()}; when another member's lease expires; and at once when
 * members come or go, which they signal.
 */
final class LeaseKeeper implements WakeUpTarget {
    private static final Logger LOG = LoggerFactory.getLogger(LeaseKeeper.class);
    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 1_000;
    /** The delay between the end of another member's lease and taking it: the database's clock must have passed it. */
    private static final long AFTER_EXPIRY_MS = 5;
    /** The delay before taking again what other members took faster. */
    private static final long TAKE_RETRY_MS = 100;
    /** How often this delay is doubled while nothing can be taken. */
    private static final int TAKE_RETRY_DOUBLINGS_MAX = 3;
    /** The delay before releasing what is drained while a commit of the member is under way. */
    private static final long RELEASE_RETRY_MS = 20;

    private static final long RECOVERY_RETRY_MS = 1_000;
    /** The delay before the second attempt to leave: a connection may just have broken. */
    private static final long LEAVE_RETRY_MS = 50;

    private final Shard shard;
    private final long heartbeatNanos;
    private final HeartbeatSchedule schedule;
    private final Fetchers fetchers;
    private final WakeUp wakeUp;
    private final PartitionTransfers transfers;
    private final ShardBarriers barriers;
    private final List<Participant> participants = new CopyOnWriteArrayList<>();
    private final WorkerCheck workers;
    private final LeaseRenewals renewals;
    private final HeartbeatTurns<Participant> turns;
    private final HeartbeatSender sender;

    private final ServiceThread thread;
    private final FailureSeries failures = new FailureSeries();
    /** Whether the database has answered a heartbeat in the current turn: nothing else shows that heartbeats work. */
    private boolean isAnswered;
    /** Attempts to take that returned nothing, since one did. */
    private int emptyTakes;

    private final HistoryRecovery recovery;
    private final Map<ShardMember, FailureSeries> unrecovered = new HashMap<>();

    LeaseKeeper(
            Shard shard,
            Settings settings,
            HeartbeatSchedule schedule,
            Fetchers fetchers,
            CommitThread commits,
            WakeUp wakeUp,
            Listeners listeners,
            ShardBarriers barriers) {
        this.barriers = barriers;
        this.shard = shard;
        this.heartbeatNanos = settings.heartbeat().toNanos();
        Duration lease = settings.lease();
        // Short enough that a second heartbeat on another connection is possible before the lease ends.
        Duration answerTimeout = lease.minus(settings.heartbeat()).dividedBy(2);
        this.turns = new HeartbeatTurns<>(heartbeatNanos);
        this.sender = new HeartbeatSender(shard, lease, answerTimeout, settings.heartbeat(), this::applyAll);
        this.schedule = schedule;
        this.fetchers = fetchers;
        this.wakeUp = wakeUp;
        this.recovery = new HistoryRecovery(shard, answerTimeout);
        shard.addAnchors(changed -> schedule::requestHeartbeat);
        this.workers = new WorkerCheck(shard, lease, workers(fetchers, commits));
        this.renewals = new LeaseRenewals(lease, listeners);
        this.transfers = new PartitionTransfers(shard, lease, answerTimeout, wakeUp, listeners);
        this.thread = new ServiceThread("eventsql-lease-" + shard.name(), this::run);
    }

    private static List<ServiceThread> workers(Fetchers fetchers, CommitThread commits) {
        List<ServiceThread> workers = new ArrayList<>(fetchers.threads());
        workers.add(commits.thread());
        return workers;
    }

    void start() {
        thread.start();
    }

    /** Lets the member take its share from now on; the others release what is above theirs. */
    void add(ShardMember member, OffsetCommitter committer, Dispatcher dispatcher) {
        participants.add(new Participant(member, committer, dispatcher));
        schedule.requestHeartbeat(member.consumerId());
    }

    /**
     * Lets the member take nothing more. It releases its partitions as their handlers end, and keeps its leases until
     * then; when all have ended, it leaves.
     */
    void beginLeave(ShardMember member) {
        member.close();
        schedule.requestHeartbeat();
    }

    /**
     * Waits until the member has left. At the handlers' deadline it leaves in any case: the leases of partitions whose
     * handlers have not ended expire.
     *
     * @return whether all handlers have ended
     */
    boolean awaitLeft(ShardMember member, CloseDeadline deadline) throws InterruptedException {
        if (thread.isCurrent()) { // a listener closes it
            member.leaveNow();
            letClosedLeave();
        } else if (!member.awaitLeft(deadline.handlersNanos())) {
            leaveNow(member);
            if (!member.awaitLeft(deadline.endNanos())) {
                UnfinishedWork.of(member).report("has not left " + shard + " at the end of its close timeout");
            }
        }
        return member.haveHandlersEnded();
    }

    /** Returns whether the caller is a listener that this object has called: leases expire until it returns. */
    boolean isCurrentThread() {
        return thread.isCurrent();
    }

    /** Lets a member that closes leave without waiting for its handlers. */
    void leaveNow(ShardMember member) {
        member.leaveNow();
        schedule.requestRelease();
    }

    @Override
    public void consumerChanged(int consumerId) {
        if (participants.stream().anyMatch(p -> p.member().consumerId() == consumerId)) {
            schedule.requestHeartbeat(consumerId);
        }
    }

    @Override
    public void wakeAll() {
        schedule.requestHeartbeat();
    }

    private void run() throws InterruptedException {
        HeartbeatSchedule.Due due = schedule.await();
        requestTurns(participants, p -> due.isRequestedFor(p.member().consumerId()));
        long retryMs = RETRY_MAX_MS; // after an Error
        boolean done = false;
        isAnswered = false;
        try {
            letClosedLeave();
            recoverAll();
            @Nullable SQLException conflict = due.heartbeat() ? heartbeat() : null;
            releaseDrained();
            letClosedLeave();
            done = conflict == null;
            if (conflict != null) {
                retryMs = report(conflict);
            }
        } catch (SQLException | RuntimeException e) {
            retryMs = report(e);
        } finally {
            if (!done) {
                schedule.scheduleAt(
                        System.nanoTime() + Math.min(heartbeatNanos, TimeUnit.MILLISECONDS.toNanos(retryMs)));
            }
        }
        int ended = done && isAnswered ? failures.end() : 0;
        if (ended > 0) {
            LOG.info("Heartbeats on {} work again after {} failed attempts", shard, ended);
        }
    }

    private void requestTurns(List<Participant> among, Predicate<Participant> requested) {
        turns.request(among.stream().filter(requested).toList(), System.nanoTime());
    }

    /** Returns the error of a member whose rows another transaction has locked, if there is one. */
    private @Nullable SQLException heartbeat() throws SQLException {
        long sentAt = System.nanoTime();
        schedule.scheduleAt(sentAt + heartbeatNanos);
        boolean isSuspended = workers.requiresRelease(sentAt);
        participants.forEach(participant -> participant.member().setSuspended(isSuspended));
        String incarnation = shard.incarnation();
        List<Participant> current = participants.stream()
                .filter(p -> p.member().membership().incarnation().equals(incarnation))
                .toList();
        List<Participant> turn = turns.next(current, sentAt);
        turns.sent(turn, current, sentAt);
        HeartbeatSender.Unanswered unanswered;
        try {
            unanswered = sender.send(turn, incarnation, sentAt);
            requestTurns(unanswered.members(), participants::contains);
        } catch (SQLException | RuntimeException e) {
            requestTurns(turn, participants::contains); // what failed is repeated
            if (!(e instanceof SQLException sql) || !shard.recheckAfter(sql, incarnation)) {
                throw e;
            }
            schedule.scheduleWithin(TimeUnit.MILLISECONDS.toNanos(RETRY_MIN_MS));
            return null;
        }
        schedule.scheduleWithin(turns.nanosToNext(current, System.nanoTime()));
        return unanswered.conflict();
    }

    private void applyAll(List<Heartbeat> heartbeats, List<HeartbeatReply> replies, long sentAt) throws SQLException {
        isAnswered = true;
        if (replies.size() < heartbeats.size()) {
            endDeleted(heartbeats, replies);
        }
        for (HeartbeatReply reply : replies) {
            apply(heartbeats.get(reply.member()), reply);
        }
        for (HeartbeatReply reply : replies) { // when all leases are renewed here, too: taking may fail
            boolean asked = takeFree(heartbeats.get(reply.member()).participant(), reply);
            if (asked && System.nanoTime() - sentAt > heartbeatNanos) {
                schedule.requestHeartbeat(); // the leases of many members must not expire while they take their shares
                return;
            }
        }
    }

    private void apply(Heartbeat heartbeat, HeartbeatReply reply) {
        ShardMember member = heartbeat.participant().member();
        if (member.recordAnswer()) { // only now other members can see it
            wakeUp.consumerChanged(shard, member.consumerId());
        }
        renewals.apply(heartbeat, reply);
        heartbeat.participant().committer().requestPostponed();
        if (member.hasParkedKeys()) { // they may wait for others, since keys have moved between shards
            barriers.request(shard, member.membership());
        }
        if (reply.nextExpiryMs() != null) {
            long delayNanos = TimeUnit.MILLISECONDS.toNanos(reply.nextExpiryMs() + AFTER_EXPIRY_MS);
            turns.requestWithin(heartbeat.participant(), delayNanos, System.nanoTime());
        }
    }

    /** Takes what the member lacks of its share; returns whether there was something to take. */
    private boolean takeFree(Participant participant, HeartbeatReply reply) throws SQLException {
        ShardMember member = participant.member();
        int wanted = reply.share() - member.assignments().size();
        if (wanted <= 0 || reply.free() == 0) {
            return false;
        }
        int taken = transfers.take(member, wanted);
        if (taken < wanted) {
            barriers.request(shard, member.membership());
            // Partitions that wait for others, since the stream has grown, may be free for long.
            long retryMs = TAKE_RETRY_MS << Math.min(emptyTakes, TAKE_RETRY_DOUBLINGS_MAX);
            turns.requestWithin(participant, TimeUnit.MILLISECONDS.toNanos(retryMs), System.nanoTime());
        }
        emptyTakes = taken > 0 ? 0 : emptyTakes + 1;
        if (taken > 0) {
            fetchers.signal();
            schedule.requestHeartbeat(member.consumerId()); // there may be events to redrive
        }
        return true;
    }

    private void releaseDrained() throws SQLException {
        for (Participant participant : participants) {
            ShardMember member = participant.member();
            // What a member owns in a former incarnation is compared before it is removed.
            if (recovery.isCurrent(member) && !transfers.releaseDrained(member, participant.committer())) {
                schedule.scheduleWithin(TimeUnit.MILLISECONDS.toNanos(RELEASE_RETRY_MS)); // heartbeats never wait
            }
        }
    }

    /** Lets members leave that are closed, and whose handlers have ended or are not waited for any longer. */
    private void letClosedLeave() {
        for (Participant participant : participants) {
            ShardMember member = participant.member();
            if (member.beginLeave()) {
                if (transfers.leave(member, participant.committer())) {
                    if (!member.haveHandlersEnded()) {
                        UnfinishedWork.of(member).report("left " + shard + " without waiting for its handlers");
                    }
                    remove(participant, Reason.RELEASED);
                } else {
                    schedule.scheduleWithin(TimeUnit.MILLISECONDS.toNanos(LEAVE_RETRY_MS));
                }
            }
        }
    }

    private void remove(Participant participant, Reason reason) {
        ShardMember member = participant.member();
        participants.remove(participant);
        turns.remove(participant);
        sender.remove(participant);
        fetchers.remove(member);
        unrecovered.remove(member);
        member.assignments().forEach(assignment -> member.remove(assignment, reason));
        member.markLeft();
    }

    private void endDeleted(List<Heartbeat> heartbeats, List<HeartbeatReply> replies) {
        Set<Integer> answered =
                new HashSet<>(replies.stream().map(HeartbeatReply::member).toList());
        for (int i = 0; i < heartbeats.size(); i++) {
            if (!answered.contains(i)) {
                Participant participant = heartbeats.get(i).participant();
                ShardMember member = participant.member();
                LOG.warn(
                        "Consumer {} of stream {} was deleted on {}; ending its member",
                        member.spec().name(),
                        member.spec().stream(),
                        shard);
                member.close();
                remove(participant, Reason.LOST);
            }
        }
    }

    /** Lets the members continue that have ids of a former incarnation of the database; the others do not wait for one. */
    private void recoverAll() throws SQLException {
        for (Participant participant : participants) {
            ShardMember member = participant.member();
            if (recovery.isCurrent(member)) {
                continue;
            }
            try {
                if (recovery.recover(member)) {
                    participant.committer().request(); // assignments that continue may have something to commit
                    reportRecovered(member);
                    schedule.requestHeartbeat();
                }
            } catch (SQLException | UnknownStreamException e) {
                schedule.scheduleWithin(TimeUnit.MILLISECONDS.toNanos(RECOVERY_RETRY_MS));
                if (unrecovered
                        .computeIfAbsent(member, m -> new FailureSeries())
                        .add(e.toString())
                        .isNew()) {
                    LOG.error(
                            "Consumer {} of stream {} cannot continue on {}, whose database was restarted, failed over or was"
                                    + " restored; retrying every {} ms: {}",
                            member.spec().name(),
                            member.spec().stream(),
                            shard,
                            RECOVERY_RETRY_MS,
                            e.toString());
                }
            }
        }
    }

    private void reportRecovered(ShardMember member) {
        FailureSeries failed = unrecovered.remove(member);
        if (failed != null) {
            LOG.info(
                    "Consumer {} of stream {} continues on {} after {} failed attempts",
                    member.spec().name(),
                    member.spec().stream(),
                    shard,
                    failed.end());
        }
    }

    /** Returns the pause before the next attempt. */
    private long report(Exception e) {
        FailureSeries.Failure failure = failures.add(e.toString());
        if (failure.isNew()) {
            LOG.warn("Heartbeat on {} failed; retrying in {} ms: {}", shard, failure.retryMs(), e.toString());
        } else {
            LOG.debug("Heartbeat on {} failed again; retrying in {} ms", shard, failure.retryMs(), e);
        }
        return failure.retryMs();
    }

    void close(CloseDeadline deadline) throws InterruptedException {
        thread.close();
        schedule.requestRelease();
        deadline.join(thread);
    }
}
