package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches from one shard for all members of this process: one platform thread. It fetches for a member when one of its
 * partitions may have events and room for a page, all such partitions in one round trip.
 *
 * <p>What has new events it learns from signals. Partitions of a stream that has just had events are asked again without
 * one, after a moment and then some times more, because a signal from another process takes longer than that; such
 * probes cost next to nothing where there is nothing. And every poll interval it looks at the heads of all partitions.
 */
final class Fetcher implements WakeUp.Target {
    private static final Logger LOG = LoggerFactory.getLogger(Fetcher.class);
    /**
     * The shortest time between two fetches while pages are not full, for each {@link #EVENTS_PER_PACE} of the last one:
     * under load a fetch then finds more than one batch, which costs the database a fraction. The first fetch after a
     * pause goes at once.
     */
    private static final long PACE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final int EVENTS_PER_PACE = 20;
    private static final int PACES_MAX = 5;
    /** Probes of a stream after its last events: together they last longer than the pause between signals. */
    private static final int PROBES = 8;
    /** The pause before a probe is at least so many times what a fetch takes: probing must not keep a core busy. */
    private static final int PROBE_PAUSES = 2;

    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 1_000;

    private final Shard shard;
    private final long pollNanos;
    private final List<ShardMember> members = new CopyOnWriteArrayList<>();
    private final Thread thread;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition signal = lock.newCondition();
    private boolean signalled;
    private volatile boolean closed;
    private volatile boolean lookWanted;

    private long polledAt = System.nanoTime();
    /** Streams that have just had events, and how many probes of them are left. */
    private final Map<Integer, Integer> recentlyActiveStreams = new HashMap<>();

    private int failures;
    private long fetchedAt = System.nanoTime();
    /** What the last fetch took that found little. */
    private long probeNanos;

    private boolean lastPagesFull;
    private int lastEvents;

    Fetcher(Shard shard, Duration pollInterval) {
        this.shard = shard;
        this.pollNanos = pollInterval.toNanos();
        this.thread = new Thread(this::run, "eventsql-fetch-" + shard.name());
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    void add(ShardMember member) {
        members.add(member);
        signal();
    }

    void remove(ShardMember member) {
        members.remove(member);
    }

    @Override
    public void wake(int streamId, int partition) {
        for (ShardMember member : members) {
            if (member.streamId() == streamId) {
                member.partition(partition).ifPresent(OwnedPartition::wake);
            }
        }
        signal();
    }

    @Override
    public void wakeAll() {
        members.forEach(member -> member.partitions().forEach(OwnedPartition::wake));
        signal();
    }

    /** There may be something to fetch, or room for it. */
    void signal() {
        lock.lock();
        try {
            signalled = true;
            signal.signal();
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        try {
            while (!closed) {
                awaitSignalOrDue();
                try {
                    if (isAnythingWanted() || isDue(nextProbeAt())) {
                        pace();
                        probe();
                        fetchAll();
                    }
                    if (isPollDue()) {
                        lookWanted = false;
                        polledAt = System.nanoTime();
                        look();
                    }
                    failures = 0;
                } catch (SQLException | RuntimeException e) { // the one thread of all members must go on
                    retryLater(e);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitSignalOrDue() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (!signalled && !closed) {
                long left = Math.min(polledAt + pollNanos, nextProbeAt()) - System.nanoTime();
                if (left <= 0) {
                    return;
                }
                signal.awaitNanos(left);
            }
            signalled = false;
        } finally {
            lock.unlock();
        }
    }

    private static boolean isDue(long nanoTime) {
        return nanoTime - System.nanoTime() <= 0;
    }

    private boolean isPollDue() {
        return lookWanted || isDue(polledAt + pollNanos);
    }

    /** When to probe the lively streams; not before the next poll if there are none. */
    private long nextProbeAt() {
        return recentlyActiveStreams.isEmpty()
                ? polledAt + pollNanos
                : fetchedAt + Math.max(PACE_NANOS, Math.max(paceNanos(), PROBE_PAUSES * probeNanos));
    }

    /** Has the fetch ask for all that the lively streams may have, whatever it is made for. */
    private void probe() {
        if (recentlyActiveStreams.isEmpty()) {
            return;
        }
        for (ShardMember member : members) {
            if (recentlyActiveStreams.containsKey(member.streamId())) {
                member.partitions().forEach(OwnedPartition::probe);
            }
        }
        recentlyActiveStreams.replaceAll((streamId, probes) -> probes - 1);
        recentlyActiveStreams.values().removeIf(probes -> probes == 0);
    }

    private long paceNanos() {
        return Math.min(lastEvents / EVENTS_PER_PACE, PACES_MAX) * PACE_NANOS;
    }

    private boolean isAnythingWanted() {
        return members.stream().anyMatch(ShardMember::wantsPages);
    }

    private void pace() throws InterruptedException {
        long early = fetchedAt + paceNanos() - System.nanoTime();
        if (!lastPagesFull && early > 0) {
            TimeUnit.NANOSECONDS.sleep(early);
        }
    }

    /** Fetches while any member wants pages; members take turns, so that one far behind does not hold up the others. */
    private void fetchAll() throws SQLException {
        fetchedAt = System.nanoTime();
        lastPagesFull = false;
        lastEvents = 0;
        boolean more = true;
        while (more && !closed) {
            if (isPollDue()) {
                signal(); // goes on after the poll
                return;
            }
            more = false;
            for (ShardMember member : members) {
                if (member.wantsPages()) {
                    fetch(member);
                    more = true;
                }
            }
        }
        if (lastEvents < EVENTS_PER_PACE) {
            probeNanos = System.nanoTime() - fetchedAt;
        }
    }

    private void fetch(ShardMember member) throws SQLException {
        List<OwnedPartition> partitions = new ArrayList<>();
        List<Request> requests = new ArrayList<>();
        for (OwnedPartition partition : member.partitionsInTurn()) {
            Optional<Request> request = partition.beginFetch();
            if (request.isPresent()) {
                partitions.add(partition);
                requests.add(request.get());
            }
        }
        if (requests.isEmpty()) {
            return;
        }
        ConsumerSpec spec = member.spec();
        List<List<StoredEvent>> pages;
        try {
            pages = shard.require()
                    .call(connection -> shard.tables()
                            .fetch()
                            .execute(
                                    connection,
                                    member.streamId(),
                                    member.stream(),
                                    shard.number(),
                                    requests,
                                    spec.pageEvents(),
                                    spec.pageBytes()));
        } catch (SQLException e) {
            partitions.forEach(OwnedPartition::wake); // what was asked for is still wanted
            throw e;
        }
        for (int i = 0; i < pages.size(); i++) {
            give(member, partitions.get(i), requests.get(i), pages.get(i));
        }
    }

    private void give(ShardMember member, OwnedPartition partition, Request request, List<StoredEvent> page) {
        if (!page.isEmpty() && page.getFirst().offset() != request.fromOffset()) {
            lookNow(); // it is below the log's start, which the heads tell
            return;
        }
        lastEvents += page.size();
        if (!page.isEmpty()) {
            recentlyActiveStreams.put(member.streamId(), PROBES);
        }
        lastPagesFull |= page.size() >= member.spec().pageEvents();
        if (partition.fetched(page, member.spec().pageEvents(), member.spec().pageBytes())) {
            member.member().dispatcher().start(member, partition);
        }
    }

    /** Compares what each partition has fetched with what is stored, also where no signal told of anything. */
    private void look() throws SQLException {
        int[] streamIds =
                members.stream().mapToInt(ShardMember::streamId).distinct().toArray();
        if (streamIds.length == 0) {
            return;
        }
        // As they are before the heads are read: what is taken later may begin beyond them.
        Map<ShardMember, List<OwnedPartition>> held = new LinkedHashMap<>();
        members.forEach(member -> held.put(member, member.partitions()));
        Map<Place, Head> heads = new HashMap<>();
        for (Head head :
                shard.require().call(connection -> shard.tables().partitions().heads(connection, streamIds))) {
            heads.put(new Place(head.streamId(), head.partition()), head);
        }
        held.forEach((member, partitions) -> {
            for (OwnedPartition partition : partitions) {
                @Nullable Head head = heads.get(new Place(member.streamId(), partition.partition()));
                if (head != null && !partition.isEnding()) {
                    look(member, partition, head);
                }
            }
        });
    }

    private record Place(int streamId, int partition) {}

    /** A consumer whose next offset is not in the log never jumps silently. */
    private void look(ShardMember member, OwnedPartition partition, Head head) {
        if (member.listeners().any()) {
            long lag = Math.max(0, head.head() - Math.max(partition.committedOffset(), head.logStart()));
            member.listeners().tell(l -> l.lag(member.name(partition), lag));
        }
        long next = partition.fetchedOffset();
        if (next < head.logStart() || next > head.head()) {
            member.member().failures().outOfRange(member, partition, next, head.logStart(), head.head());
        } else if (partition.isIdle() && next < head.head()) {
            partition.wake();
            signal();
        }
    }

    /** Looks at all heads at once. */
    void lookNow() {
        lookWanted = true;
        signal();
    }

    private void retryLater(Exception e) throws InterruptedException {
        if (closed) {
            return;
        }
        long delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, 10));
        if (failures++ == 0) {
            LOG.warn("Fetching from {} failed, is tried again: {}", shard, e.toString());
        } else {
            LOG.debug("Fetching from {} still fails", shard, e);
        }
        TimeUnit.MILLISECONDS.sleep(delayMs);
        signal();
    }

    void close() throws InterruptedException {
        closed = true;
        signal();
        thread.join(TimeUnit.SECONDS.toMillis(1));
        thread.interrupt();
    }
}
