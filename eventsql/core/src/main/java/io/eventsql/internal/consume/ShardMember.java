package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.LeaseTable.Beat;
import io.eventsql.internal.sql.LeaseTable.Taken;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;

/** A member's part on one shard: the partitions it holds there. Thread-safe. */
final class ShardMember {
    private final Member member;
    private final Shard shard;
    private final ShardThreads threads;
    private final int streamId;
    private final int consumerId;
    private final AtomicInteger turn = new AtomicInteger();
    /** By partition, so that fetches look the same from one to the next. Replaced as a whole. */
    private volatile List<OwnedPartition> partitions = List.of();
    /** No longer held, but a handler is still at work: not taken again until it ends. */
    private final List<OwnedPartition> leaving = new ArrayList<>();

    private final ReentrantLock commitLock = new ReentrantLock();
    private boolean answered;
    private boolean closed;
    private boolean triedToLeave;
    private volatile boolean leavesNow;
    private volatile boolean ended;
    private final CountDownLatch left = new CountDownLatch(1);

    ShardMember(Member member, ShardThreads threads, int streamId, int consumerId) {
        this.member = member;
        this.shard = threads.shard();
        this.threads = threads;
        this.streamId = streamId;
        this.consumerId = consumerId;
    }

    Member member() {
        return member;
    }

    ConsumerSpec spec() {
        return member.spec();
    }

    StreamSpec stream() {
        return member.stream();
    }

    UUID memberId() {
        return member.id();
    }

    Shard shard() {
        return shard;
    }

    ShardThreads threads() {
        return threads;
    }

    Listeners listeners() {
        return member.listeners();
    }

    /** Held while offsets are committed: commits of one member follow one another. Heartbeats never wait for it. */
    ReentrantLock commitLock() {
        return commitLock;
    }

    int streamId() {
        return streamId;
    }

    int consumerId() {
        return consumerId;
    }

    ConsumerPartition name(OwnedPartition partition) {
        return name(partition.partition());
    }

    ConsumerPartition name(int partition) {
        return new ConsumerPartition(spec().stream(), spec().name(), shard.number(), partition);
    }

    List<OwnedPartition> partitions() {
        return partitions;
    }

    Optional<OwnedPartition> partition(int number) {
        for (OwnedPartition partition : partitions) {
            if (partition.partition() == number) {
                return Optional.of(partition);
            }
        }
        return Optional.empty();
    }

    /** All partitions, each time beginning with another one. */
    Iterable<OwnedPartition> partitionsInTurn() {
        List<OwnedPartition> all = partitions;
        int first = Math.floorMod(turn.getAndIncrement(), Math.max(1, all.size()));
        List<OwnedPartition> inTurn = new ArrayList<>(all.subList(first, all.size()));
        inTurn.addAll(all.subList(0, first));
        return inTurn;
    }

    boolean wantsPages() {
        return partitions.stream().anyMatch(OwnedPartition::wantsPage);
    }

    List<Handled> toCommit() {
        return partitions.stream()
                .map(OwnedPartition::toCommit)
                .filter(Objects::nonNull)
                .toList();
    }

    // What the lease keeper does

    /** The heartbeat: a partition whose handler runs too long is not named, so its lease runs out. */
    Beat beat(String name) {
        long timeout = spec().handlerTimeout().toNanos();
        List<Integer> held = new ArrayList<>();
        int stuck = 0;
        for (OwnedPartition partition : partitions) {
            if (partition.longestCallNanos() < timeout) {
                held.add(partition.partition());
            } else {
                stuck++;
            }
        }
        synchronized (this) {
            leaving.removeIf(partition -> !partition.isHandling());
            stuck += (int) leaving.stream()
                    .filter(partition -> partition.longestCallNanos() >= timeout)
                    .count();
        }
        return new Beat(consumerId, member.id(), name, maxPartitions(held.size(), stuck), held);
    }

    /** With a stuck handler it takes no more, so that others get a larger share; if it can handle nothing, they get all. */
    private int maxPartitions(int held, int stuck) {
        if (isClosed() || stuck >= spec().concurrency()) {
            return 0;
        }
        return stuck == 0 ? spec().maxPartitions() : Math.min(held, spec().maxPartitions());
    }

    /** Says once that the member has had its first heartbeat. */
    synchronized boolean isFirstAnswer() {
        boolean first = !answered;
        answered = true;
        return first;
    }

    /** Partitions that must not be taken now: held already, or an earlier handler is still at work on them. */
    synchronized List<Integer> notToTake() {
        leaving.removeIf(partition -> !partition.isHandling());
        return Stream.concat(leaving.stream(), partitions.stream())
                .map(OwnedPartition::partition)
                .distinct()
                .toList();
    }

    /**
     * The member holds these partitions now.
     *
     * @return {@code false} if it was closed meanwhile: they must be released
     */
    synchronized boolean add(Collection<Taken> taken, Map<Integer, Set<String>> parkedKeys, long heldUntilNanos) {
        if (closed) {
            return false;
        }
        List<OwnedPartition> changed = new ArrayList<>(partitions);
        for (Taken one : taken) {
            changed.add(new OwnedPartition(
                    one, stream().segmentSize(), parkedKeys.getOrDefault(one.partition(), Set.of()), heldUntilNanos));
        }
        changed.sort(Comparator.comparingInt(OwnedPartition::partition));
        partitions = List.copyOf(changed);
        return true;
    }

    /** The member no longer holds the partition; does nothing if that is known already. */
    void remove(OwnedPartition partition, Reason reason) {
        synchronized (this) {
            partition.giveUp();
            List<OwnedPartition> left =
                    partitions.stream().filter(p -> p != partition).toList();
            if (left.size() == partitions.size()) {
                return;
            }
            partitions = left;
            if (partition.isHandling()) {
                leaving.add(partition);
            }
        }
        listeners().tell(l -> l.partitionRevoked(name(partition), reason));
    }

    // Closing

    /** From now on nothing is added, and no further event is given to the handler. */
    synchronized void close() {
        closed = true;
        partitions.forEach(OwnedPartition::drain);
    }

    /** Handlers that have not ended by now are not waited for. */
    void leaveNow() {
        leavesNow = true;
    }

    /** Whether it is closed, and nothing more is waited for; remembers whether all handlers have ended. */
    synchronized boolean mayLeave() {
        leaving.removeIf(partition -> !partition.isHandling());
        ended = closed && leaving.isEmpty() && partitions.stream().noneMatch(OwnedPartition::isHandling);
        return ended || (closed && leavesNow);
    }

    /** Says yes once, if there is time. */
    boolean mayTryLeavingAgain() {
        boolean again = !triedToLeave && !leavesNow;
        triedToLeave = true;
        return again;
    }

    /** It is gone. */
    void left() {
        left.countDown();
    }

    boolean awaitLeft(long deadlineNanos) throws InterruptedException {
        return left.await(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    /** Whether all its handlers had ended when it left. */
    boolean hasEnded() {
        return ended;
    }

    synchronized boolean isClosed() {
        return closed;
    }
}
