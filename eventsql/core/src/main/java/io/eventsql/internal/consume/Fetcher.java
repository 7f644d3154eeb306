package io.eventsql.internal.consume;

import io.eventsql.internal.consume.FetchRounds.Outcome;
import io.eventsql.internal.shard.Replica;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUpTarget;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches from one shard, its primary or its replica, for the members of this process that read there: one platform thread.
 * It fetches for a member when one of its partitions may have events and room for them, all such partitions of all members in
 * one round trip if possible ({@link FetchRounds}).
 *
 * <p>A page that begins with a range without events is not passed on, unless compaction has removed them ({@link
 * CompactedGaps}): at once the heads are read, which show whether the
 * log starts above it ({@link OutOfRangeResolver}) or whether its events are missing ({@link MissingEvents}).
 *
 * <p>Signals name the partitions with new events. Partitions of a stream that has just had events are fetched
 * again without a signal, after a moment and then some times more, because a signal from another process takes longer
 * than that; such probes cost next to nothing where there is nothing. And at every poll interval it reads the heads of
 * all partitions. These heads are the primary's in any case: a replica that lacks events is behind, and what it has is no
 * reason to move a consumer.
 */
final class Fetcher implements WakeUpTarget {
    private static final Logger LOG = LoggerFactory.getLogger(Fetcher.class);
    private static final long RECOVERY_CHECK_MS = 50;

    private final Shard shard;
    private final FetchSchedule schedule;
    private final Listeners listeners;
    private final PageReader reader;
    private final FailingStreams failing;
    private final FetchRounds rounds;
    private final List<Subscriber> subscribers = new CopyOnWriteArrayList<>();
    private final ServiceThread thread;
    private final FailureSeries failures = new FailureSeries();
    /** Whether signals, which come from the primary, may precede what they announce. */
    private final boolean isOfReplica;

    /** Creates a fetcher that reads from the primary. */
    Fetcher(Shard shard, FetchSchedule schedule, Listeners listeners) {
        this(shard, schedule, listeners, FetchSource.primary(shard), "eventsql-fetch-" + shard.name(), false);
    }

    /** Creates a fetcher that reads from the replica. */
    Fetcher(Shard shard, Replica replica, FetchSchedule schedule, Listeners listeners) {
        this(
                shard,
                schedule,
                listeners,
                FetchSource.replica(shard, replica),
                "eventsql-fetch-replica-" + shard.name(),
                true);
    }

    private Fetcher(
            Shard shard,
            FetchSchedule schedule,
            Listeners listeners,
            FetchSource source,
            String threadName,
            boolean isOfReplica) {
        this.shard = shard;
        this.schedule = schedule;
        this.listeners = listeners;
        this.reader = new PageReader(shard, source, this);
        this.failing = new FailingStreams(shard);
        this.rounds = new FetchRounds(shard, schedule, reader, failing);
        this.thread = new ServiceThread(threadName, this::run);
        this.isOfReplica = isOfReplica;
    }

    void start() {
        thread.start();
    }

    void add(ShardMember member, Dispatcher dispatcher, OutOfRangeResolver outOfRange) {
        subscribers.add(new Subscriber(member, dispatcher, outOfRange));
        schedule.signal();
    }

    void remove(ShardMember member) {
        subscribers.removeIf(subscriber -> subscriber.member() == member);
    }

    @Override
    public void wake(int streamId, int partition) {
        for (Subscriber subscriber : subscribers) {
            if (subscriber.member().streamId() == streamId) {
                subscriber.member().assignment(partition).ifPresent(Assignment::wake);
            }
        }
        signalled();
    }

    @Override
    public void wakeAll() {
        for (Subscriber subscriber : subscribers) {
            subscriber.member().assignments().forEach(Assignment::wake);
        }
        signalled();
    }

    private void signalled() {
        if (isOfReplica) {
            schedule.catchUp();
        }
        schedule.signal();
    }

    FetchSchedule schedule() {
        return schedule;
    }

    /** Returns the thread, whose failure shows that nothing is fetched. */
    ServiceThread thread() {
        return thread;
    }

    private void run() throws InterruptedException {
        schedule.await(failing.nanosToRetry());
        failing.endPauses();
        boolean done = false;
        try {
            if (isAnythingWanted() || schedule.isProbeDue()) {
                schedule.pace();
                probe();
                fetchAll();
            }
            if (schedule.isPollDue()) {
                schedule.beginPoll();
                poll();
            }
            reader.checkFunctions();
            done = true;
            reportEnd();
        } catch (SQLException | RuntimeException e) {
            if (SqlErrors.isOtherIncarnation(e)) {
                awaitRecovery(e);
            } else {
                awaitRetry(e);
            }
        } finally {
            if (!done) { // after an Error or an interrupt, too
                schedule.signal();
            }
        }
    }

    private boolean isAnythingWanted() {
        return subscribers.stream().anyMatch(rounds::wantsPages);
    }

    /** Extends the next fetch to all partitions of recently active streams. */
    private void probe() {
        Set<Integer> streamIds = schedule.beginProbe();
        for (Subscriber subscriber : subscribers) {
            if (streamIds.contains(subscriber.member().streamId())) {
                subscriber.member().assignments().forEach(Assignment::probe);
            }
        }
    }

    /** Fetches while fetches leave events; streams take turns, so that one far behind does not hold up the others. */
    private void fetchAll() throws SQLException {
        schedule.beginFetch();
        Outcome outcome = Outcome.MORE;
        while (outcome == Outcome.MORE && !thread.isClosing()) {
            if (schedule.isPollDue()) {
                schedule.signal(); // continues after the poll
                return;
            }
            outcome = rounds.fetch(subscribers);
        }
        schedule.endFetch();
        if (outcome == Outcome.FETCHED && isAnythingWanted()) { // what has come since, at its pace
            schedule.signal();
        }
    }

    /** Compares what each partition has fetched with what is stored, with or without a signal. */
    private void poll() throws SQLException {
        String incarnation = shard.incarnation();
        List<Subscriber> current = subscribers.stream()
                .filter(subscriber ->
                        subscriber.member().membership().incarnation().equals(incarnation))
                .toList();
        int[] streamIds = current.stream()
                .mapToInt(subscriber -> subscriber.member().streamId())
                .distinct()
                .toArray();
        if (streamIds.length == 0) {
            return;
        }
        record Polled(Subscriber subscriber, Assignment assignment) {}
        // The assignments before the heads: one that is taken later may begin beyond them.
        List<Polled> polled = new ArrayList<>();
        for (Subscriber subscriber : current) {
            subscriber.member().assignments().forEach(assignment -> polled.add(new Polled(subscriber, assignment)));
        }
        Map<StreamPartition, Head> heads = heads(incarnation, streamIds);
        for (Polled one : polled) {
            int streamId = one.subscriber().member().streamId();
            @Nullable
            Head head = heads.get(new StreamPartition(streamId, one.assignment().partition()));
            if (head != null && !one.assignment().isEnding()) {
                compare(one.subscriber(), one.assignment(), head);
            }
        }
    }

    private record StreamPartition(int streamId, int partition) {}

    private Map<StreamPartition, Head> heads(String incarnation, int[] streamIds) throws SQLException {
        Map<StreamPartition, Head> heads = new HashMap<>();
        try {
            shard.require()
                    .call(c -> shard.tables().partitions().heads(c, incarnation, streamIds))
                    .forEach(head -> heads.put(new StreamPartition(head.streamId(), head.partition()), head));
        } catch (SQLException e) {
            shard.recheckAfter(e, incarnation);
            throw e;
        }
        return heads;
    }

    /** A consumer whose next offset is not in the log never jumps silently. */
    private void compare(Subscriber subscriber, Assignment assignment, Head head) {
        if (listeners.any()) {
            long lag = Math.max(0, head.head() - Math.max(assignment.committedOffset(), head.logStart()));
            listeners.call(l -> l.lag(assignment.name(), lag));
        }
        long next = assignment.fetchedOffset();
        if (next < head.logStart() || next > head.head()) {
            subscriber.outOfRange().resolve(assignment, next, head.logStart(), head.head());
        } else if (assignment.hasEmptyRange()) { // found before the heads were read
            if (assignment.acceptEmptyRange()) {
                subscriber.dispatcher().start(assignment);
            }
        } else if (assignment.isIdle() && next < head.head()) {
            assignment.wake();
            signalled(); // a replica that lacks it is fetched from again soon
        }
    }

    /** No failure: the database was restarted, say, which is logged, and the lease keeper ends the assignments. */
    private void awaitRecovery(Exception e) throws InterruptedException {
        LOG.debug("Fetching from {} waits until its partitions are taken in its new incarnation", shard, e);
        TimeUnit.MILLISECONDS.sleep(RECOVERY_CHECK_MS);
    }

    private void awaitRetry(Exception e) throws InterruptedException {
        if (thread.isClosing()) {
            return;
        }
        FailureSeries.Failure failure = failures.add(SqlErrors.message(e));
        if (failure.isNew()) {
            LOG.warn("Fetching from {} failed; retrying in {} ms: {}", shard, failure.retryMs(), e.toString());
        } else {
            LOG.debug("Fetching from {} failed again; retrying in {} ms", shard, failure.retryMs(), e);
        }
        TimeUnit.MILLISECONDS.sleep(failure.retryMs());
    }

    private void reportEnd() {
        int ended = failures.end();
        if (ended > 0) {
            LOG.info("Fetching from {} works again after {} failed attempts", shard, ended);
        }
    }

    void beginClose() {
        thread.close();
        schedule.signal();
    }

    void awaitClosed(CloseDeadline deadline) throws InterruptedException {
        deadline.join(thread);
    }
}
