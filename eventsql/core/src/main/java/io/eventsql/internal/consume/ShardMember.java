package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.internal.sql.LeaseTable.HeartbeatRequest;
import io.eventsql.internal.sql.LeaseTable.TakenPartition;
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
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A member on one shard: its state, and the partitions assigned to it. Thread-safe. */
final class ShardMember {
    private static final Logger LOG = LoggerFactory.getLogger(ShardMember.class);

    /** The transitions are drawn in the package's documentation. */
    private enum State {
        /** Its first heartbeat is not answered yet: other members do not know it. */
        JOINING,
        /** It takes its share of the partitions. */
        ACTIVE,
        /** It takes nothing more, releases what it owns, and leaves when all handlers have ended. */
        CLOSING,
        /** It leaves without waiting for handlers, and without another attempt if that fails. */
        LEAVING,
        /** Its row is deleted, or its leases expire. */
        LEFT
    }

    /** Replaced when the database has another incarnation. */
    private volatile Membership membership;

    private final FetchBudget budget;
    private final Listeners listeners;
    private final AtomicInteger rotation = new AtomicInteger();
    /** Sorted by partition, so that fetches are alike from one to the next. Replaced as a whole. */
    private volatile List<Assignment> assignments = List.of();
    /** Ended while a handler was running: their partitions are not taken again until it ends. */
    private final List<Assignment> endedButHandling = new ArrayList<>();

    private State state = State.JOINING;
    private boolean suspended;
    private boolean handlersEnded;
    private final CountDownLatch left = new CountDownLatch(1);

    ShardMember(Membership membership, FetchBudget budget, Listeners listeners) {
        this.membership = membership;
        this.budget = budget;
        this.listeners = listeners;
    }

    Membership membership() {
        return membership;
    }

    /**
     * Continues as another membership, after the database has got another incarnation. What was taken before must have been
     * removed.
     */
    synchronized void replaceMembership(Membership other) {
        membership = other;
    }

    ConsumerSpec spec() {
        return membership.spec();
    }

    UUID memberId() {
        return membership.memberId();
    }

    int streamId() {
        return membership.streamId();
    }

    int consumerId() {
        return membership.consumerId();
    }

    // Assignments

    List<Assignment> assignments() {
        return assignments;
    }

    Optional<Assignment> assignment(int partition) {
        for (Assignment assignment : assignments) {
            if (assignment.partition() == partition) {
                return Optional.of(assignment);
            }
        }
        return Optional.empty();
    }

    /** Moves the order of the assignments on by one, so that each is first in its turn, and returns them in it. */
    List<Assignment> rotateAssignments() {
        List<Assignment> all = assignments;
        int first = Math.floorMod(rotation.getAndIncrement(), Math.max(1, all.size()));
        List<Assignment> rotated = new ArrayList<>(all.subList(first, all.size()));
        rotated.addAll(all.subList(0, first));
        return rotated;
    }

    boolean wantsPages() {
        return assignments.stream().anyMatch(Assignment::wantsPage);
    }

    boolean hasParkedKeys() {
        return assignments.stream()
                .anyMatch(assignment -> assignment.parkedKeys().size() > 0);
    }

    /** Whether a partition wants a page and its fetch may return much. */
    boolean isBehind() {
        return assignments.stream().anyMatch(Assignment::isBehind);
    }

    /** Returns how many events of each partition to fetch now: as many as the one wants that wants most. */
    int fetchEvents() {
        return assignments.stream()
                .filter(Assignment::wantsPage)
                .mapToInt(Assignment::fetchEvents)
                .max()
                .orElse(spec().pageEvents());
    }

    /** Returns what is handled and not committed of the partitions taken as this membership. */
    List<Handled> uncommitted(Membership taker) {
        return assignments.stream()
                .filter(assignment -> assignment.isOf(taker))
                .map(Assignment::uncommitted)
                .filter(Objects::nonNull)
                .toList();
    }

    /**
     * Adds partitions that the member has taken.
     *
     * @return {@code false} if the member closes: they must be released
     */
    synchronized boolean add(
            Collection<TakenPartition> taken, Map<Integer, Set<String>> parkedKeys, long leaseEndNanos) {
        if (isClosed()) {
            return false;
        }
        List<Assignment> changed = new ArrayList<>(assignments);
        for (TakenPartition one : taken) {
            Set<String> keys = parkedKeys.getOrDefault(one.partition(), Set.of());
            changed.add(new Assignment(membership, one, keys, leaseEndNanos, budget));
        }
        changed.sort(Comparator.comparingInt(Assignment::partition));
        assignments = List.copyOf(changed);
        return true;
    }

    /**
     * Ends an assignment and reports that to the listeners; does nothing more if it was removed before.
     *
     * @return whether it was not removed before
     */
    boolean remove(Assignment assignment, Reason reason) {
        synchronized (this) {
            assignment.end();
            List<Assignment> others =
                    assignments.stream().filter(a -> a != assignment).toList();
            if (others.size() == assignments.size()) {
                return false;
            }
            assignments = others;
            if (assignment.isHandling()) {
                endedButHandling.add(assignment);
            }
        }
        listeners.call(l -> l.partitionRevoked(assignment.name(), reason));
        return true;
    }

    /**
     * Ends an assignment, because the database has lost the offset that this member had committed. Reports that once.
     *
     * @param stored the offset that is stored now
     * @param committed the offset that the member had committed
     */
    void removeAfterLoss(Assignment assignment, long stored, long committed) {
        if (remove(assignment, Reason.HISTORY_CHANGED)) {
            reportLost(assignment, stored, committed);
        }
    }

    /** Reports that the database has lost the events or the committed offsets of a range. */
    void reportLost(Assignment assignment, long from, long to) {
        if (from >= to) {
            return;
        }
        LOG.error(
                "{}: the database went back in time, by a failover or a restore, and has lost what this member had"
                        + " committed or fetched in the offsets {} to {}; continuing at the stored offset",
                assignment.name(),
                from,
                to - 1);
        listeners.call(l -> l.historyLost(assignment.name(), from, to));
    }

    /** Returns the assignments with a handler that is running, or with handled events whose offset is not committed. */
    synchronized List<Assignment> unfinished() {
        Stream<Assignment> owned =
                assignments.stream().filter(assignment -> assignment.isHandling() || assignment.uncommitted() != null);
        return Stream.concat(endedAndHandling(), owned).distinct().toList();
    }

    private Stream<Assignment> endedAndHandling() {
        return endedButHandling.stream().filter(Assignment::isHandling);
    }

    // Heartbeats

    /** Returns the next heartbeat. It leaves out partitions whose handler exceeds its time-out: their leases expire. */
    synchronized HeartbeatRequest heartbeat() {
        endedButHandling.removeIf(assignment -> !assignment.isHandling());
        long timeout = spec().handlerTimeout().toNanos();
        List<Integer> renewed = assignments.stream()
                .filter(assignment -> assignment.calls().longestNanos() < timeout)
                .map(Assignment::partition)
                .toList();
        int stuck = assignments.size() - renewed.size();
        stuck += (int) endedAndHandling()
                .filter(assignment -> assignment.calls().longestNanos() >= timeout)
                .count();
        return new HeartbeatRequest(
                consumerId(), memberId(), membership.memberName(), maxPartitions(renewed.size(), stuck), renewed);
    }

    /** Rule 7 (Share): with a stuck handler no more than the member owns; none if it has no permit left, or closes. */
    private int maxPartitions(int renewed, int stuck) {
        if (isClosed() || suspended || stuck >= spec().concurrency()) {
            return 0;
        }
        return stuck == 0 ? spec().maxPartitions() : Math.min(renewed, spec().maxPartitions());
    }

    /** Requests no partitions, or as many as usual: a process whose threads fail keeps none. */
    synchronized void setSuspended(boolean value) {
        suspended = value;
    }

    /** Records that a heartbeat was answered; returns whether it was the first one of a member that joins. */
    synchronized boolean recordAnswer() {
        if (state != State.JOINING) {
            return false;
        }
        state = State.ACTIVE;
        return true;
    }

    /** Returns the partitions that must not be taken: owned already, or an earlier handler is still running. */
    synchronized List<Integer> notToTake() {
        return Stream.concat(endedAndHandling(), assignments.stream())
                .map(Assignment::partition)
                .distinct()
                .toList();
    }

    // Closing

    synchronized boolean isClosed() {
        return state.compareTo(State.CLOSING) >= 0;
    }

    /** Begins to close: nothing is added, and no further event is handled. */
    synchronized void close() {
        if (!isClosed()) {
            state = State.CLOSING;
        }
        assignments.forEach(Assignment::drain);
    }

    /** Waits no longer for handlers that are running. */
    synchronized void leaveNow() {
        if (state == State.CLOSING) {
            state = State.LEAVING;
        }
    }

    /** Returns whether the member leaves now, and records whether all its handlers have ended. */
    synchronized boolean beginLeave() {
        handlersEnded |= isClosed()
                && endedAndHandling().findAny().isEmpty()
                && assignments.stream().noneMatch(Assignment::isHandling);
        return handlersEnded || state == State.LEAVING;
    }

    /** Records that leaving failed; returns whether there is another attempt: there is one, if time permits. */
    synchronized boolean allowLastAttempt() {
        if (state != State.CLOSING) {
            return false;
        }
        state = State.LEAVING;
        return true;
    }

    /** Records that the member has left, and releases the threads that wait for it. */
    synchronized void markLeft() {
        state = State.LEFT;
        left.countDown();
    }

    boolean awaitLeft(long deadlineNanos) throws InterruptedException {
        return left.await(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    /** Whether all its handlers had ended when it left. */
    synchronized boolean haveHandlersEnded() {
        return handlersEnded;
    }
}
