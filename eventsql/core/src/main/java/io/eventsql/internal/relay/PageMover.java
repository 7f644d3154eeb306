package io.eventsql.internal.relay;

import io.eventsql.KeyTracking;
import io.eventsql.internal.append.GroupAppend;
import io.eventsql.internal.append.PartitionGroup;
import io.eventsql.internal.relay.Destinations.Destination;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.CountedEvents;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.RelayTable;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.TransferTable.Addressed;
import io.eventsql.internal.sql.TransferTable.StreamKey;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves pages of events out of the outbox, or of scheduled events that are due, each in one transaction: locks the relay's row,
 * deletes the page, appends the events of this database to their streams and inserts the others into the transfer table, also those
 * whose stream this database cannot get yet. Used by one thread. Uses one connection at a time.
 *
 * <p>An event that cannot be appended fails the whole transaction. Smaller and smaller pages isolate it. Alone, it is moved
 * to the refused table: at once if the database rejected its content, otherwise as soon as it is the only one that fails
 * ({@link SuspectEvent}).
 */
final class PageMover {
    private static final Logger LOG = LoggerFactory.getLogger(PageMover.class);

    private final OutboxDatabase outbox;
    private final EventSource source;
    private final Destinations destinations;
    private final SegmentKeeper segments;
    /** {@code null} if the outbox is standalone. */
    private final @Nullable AppendRepair repair;

    private final WakeUp wakeUp;
    private final PageSize size;
    private final RefusalLog refusals;
    private final SuspectEvent suspect = new SuspectEvent();
    /** The producer of this mover's batches. A batch is never resent, so each has a new number. */
    private final UUID producer = UUID.randomUUID();

    private long number;
    private Attempt attempt = new Attempt();
    private @Nullable Refusal refusal;

    PageMover(
            OutboxDatabase outbox,
            EventSource source,
            Destinations destinations,
            SegmentKeeper segments,
            WakeUp wakeUp,
            PageSize size) {
        this.outbox = outbox;
        this.source = source;
        this.destinations = destinations;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.size = size;
        this.refusals = new RefusalLog(outbox);
        Shard own = outbox.shard();
        this.repair = own == null ? null : new AppendRepair(own, segments, destinations);
    }

    /** An event that cannot be appended. */
    private record Refusal(long id, String error) {}

    /** The work of the current transaction. */
    private static final class Attempt {
        List<Row> page = List.of();
        /** First those whose events are to be counted, then those whose events were counted when they were published. */
        final List<PartitionGroup> groups = new ArrayList<>();

        /** How many of the groups have events that are to be counted. */
        int uncounted;

        /** How many events of the page can be appended by one transaction. */
        int inOrder;

        final List<Addressed> addressed = new ArrayList<>();
        final Set<String> unknown = new LinkedHashSet<>();
        final List<String> refused = new ArrayList<>();
        long[] firstOffsets = {};
        /** Whether only the commit is left, so that a failure may leave the transaction in doubt. */
        boolean isReadyToCommit;

        /** That of the outbox's own shard when the ids of the streams were read. */
        String incarnation = "";
    }

    /**
     * The result of moving a page.
     *
     * @param events the number of events that left the outbox
     * @param full whether there may be more
     * @param toShards the shards for which events were inserted into the transfer table
     */
    record Moved(int events, boolean full, Set<Integer> toShards) {
        private static final Moved NOTHING_YET = new Moved(0, true, Set.of());
    }

    /**
     * Moves one page.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended; any other failure can be retried
     */
    Moved move(RelayLease lease) throws SQLException {
        if (suspect.isProbeDue()) {
            probe(lease);
        }
        attempt = new Attempt();
        int limit = size.events();
        try {
            outbox.database().replicatedTransaction(connection -> take(connection, lease, limit));
        } catch (SQLException e) {
            if (repair(e)) {
                return Moved.NOTHING_YET;
            }
            throw e;
        }
        if (!attempt.unknown.isEmpty()) {
            destinations.lookUp(attempt.unknown);
            return Moved.NOTHING_YET;
        }
        if (attempt.inOrder < attempt.page.size()) {
            size.limit(attempt.inOrder);
            return Moved.NOTHING_YET;
        }
        completeCommitted();
        boolean full = attempt.page.size() >= limit || isFullOfBytes(attempt.page) || size.isReduced();
        size.grow();
        Set<Integer> toShards = new TreeSet<>();
        attempt.addressed.forEach(event -> toShards.add(event.shard()));
        return new Moved(attempt.page.size(), full, toShards);
    }

    /** Returns whether a page may have ended before the next event because of the bytes of its values. */
    private boolean isFullOfBytes(List<Row> page) {
        long bytes = 0;
        for (Row event : page) {
            byte[] value = event.value();
            bytes += value == null ? 0 : value.length;
        }
        return bytes >= size.bytes();
    }

    private Attempt take(Connection connection, RelayLease lease, int limit) throws SQLException {
        RelayTable.Page page = source.take(connection, lease, limit, size.bytes());
        attempt.page = page.rows();
        for (Row event : page.rows()) {
            if (!destinations.isKnown(event.stream())) {
                attempt.unknown.add(event.stream());
            }
        }
        if (!attempt.unknown.isEmpty()) {
            connection.rollback(); // look them up first, without holding a lock or this connection
        } else if (!write(connection, page.producer(), page.rows())) {
            connection.rollback(); // take fewer
        }
        attempt.isReadyToCommit = true;
        return attempt;
    }

    /** Writes events that were taken to where they belong; nothing if they would not stay in order, and returns {@code false}. */
    private boolean write(Connection connection, @Nullable UUID outboxProducer, List<Row> events) throws SQLException {
        Shard own = outbox.shard();
        attempt.incarnation = own == null ? "" : own.incarnation(); // before the ids of the streams
        Set<Long> counted = takeCounted(connection, events);
        attempt.inOrder = inOrder(events, counted);
        if (attempt.inOrder < events.size()) {
            return false;
        }
        route(connection, events, counted);
        if (!attempt.addressed.isEmpty()) {
            outbox.tables().transfer().insert(connection, Objects.requireNonNull(outboxProducer), attempt.addressed);
        }
        if (!attempt.groups.isEmpty() && own != null) {
            attempt.firstOffsets = append(connection, own);
        }
        return true;
    }

    /** Returns how many events precede the first counted one whose key has another one before it: those counted are appended first. */
    private static int inOrder(List<Row> events, Set<Long> counted) {
        if (counted.isEmpty()) {
            return events.size();
        }
        Set<StreamKey> uncounted = new HashSet<>();
        for (int i = 0; i < events.size(); i++) {
            Row event = events.get(i);
            if (event.key() != null) {
                StreamKey key = new StreamKey(event.stream(), event.key());
                if (!counted.contains(event.id())) {
                    uncounted.add(key);
                } else if (uncounted.contains(key)) {
                    return i;
                }
            }
        }
        return events.size();
    }

    private long[] append(Connection connection, Shard own) throws SQLException {
        List<PartitionGroup> uncounted = attempt.groups.subList(0, attempt.uncounted);
        List<PartitionGroup> counted = attempt.groups.subList(attempt.uncounted, attempt.groups.size());
        long[] offsets = new long[attempt.groups.size()];
        if (!counted.isEmpty()) { // first, because it locks the partitions of both in their order
            List<CountedEvents.Target> all = attempt.groups.stream()
                    .sorted()
                    .map(group -> new CountedEvents.Target(group.streamId(), group.partition()))
                    .distinct()
                    .toList();
            long[] ofCounted = outbox.tables()
                    .counted()
                    .append(
                            connection,
                            all,
                            producer,
                            ++number,
                            MapFence.of(PartitionGroup.mapVersions(counted)),
                            attempt.incarnation,
                            PartitionGroup.toRows(counted));
            System.arraycopy(ofCounted, 0, offsets, attempt.uncounted, ofCounted.length);
        }
        if (!uncounted.isEmpty()) {
            if (source.isOutbox()
                    && uncounted.stream().anyMatch(group -> group.stream().keyTracking() != KeyTracking.OFF)) {
                outbox.tables().counted().ignoreFollowing(connection);
            }
            long[] ofUncounted =
                    GroupAppend.execute(own, connection, producer, ++number, attempt.incarnation, uncounted);
            System.arraycopy(ofUncounted, 0, offsets, 0, ofUncounted.length);
        }
        return offsets;
    }

    private void route(Connection connection, List<Row> events, Set<Long> counted) throws SQLException {
        Map<Destination, PartitionGroup> groups = new HashMap<>();
        Map<Destination, PartitionGroup> countedGroups = new HashMap<>();
        Map<StreamKey, Set<Integer>> waiting = shardsOfWaiting(connection, events);
        for (Row event : events) {
            Destination to = destinations.of(event);
            Refusal refused = refusal;
            if (to == null) {
                refuse(connection, event, "there is no stream " + event.stream());
            } else if (refused != null && refused.id() == event.id()) {
                refuse(connection, event, refused.error());
            } else if (event.key() != null
                    && !counted.contains(event.id()) // those that wait come after it, as if they were in another outbox
                    && waiting.containsKey(new StreamKey(event.stream(), event.key()))) {
                Set<Integer> shards = Objects.requireNonNull(waiting.get(new StreamKey(event.stream(), event.key())));
                attempt.addressed.add(new Addressed(shardToFollow(shards, to), to.partition(), event));
            } else if (to.shard() != outbox.shard()) {
                attempt.addressed.add(new Addressed(to.shard().number(), to.partition(), event));
            } else if (destinations.isPending(event.stream())) {
                requireUncounted(event, counted);
                outbox.setSendsToItself(true);
                attempt.addressed.add(new Addressed(to.shard().number(), to.partition(), event));
            } else {
                (counted.contains(event.id()) ? countedGroups : groups)
                        .computeIfAbsent(
                                to, t -> new PartitionGroup(t.stream(), t.streamId(), t.partition(), t.mapVersion()))
                        .add(event.key(), event.value(), event.headers());
            }
        }
        groups.values().stream().sorted().forEach(attempt.groups::add);
        attempt.uncounted = attempt.groups.size();
        countedGroups.values().stream().sorted().forEach(attempt.groups::add);
    }

    /** An event is counted only where its stream exists. */
    private void requireUncounted(Row event, Set<Long> counted) throws SQLException {
        if (counted.contains(event.id())) {
            destinations.forgetNotFound();
            throw new SQLException(
                    "stream " + event.stream() + " was created while its events were taken", SqlErrors.NO_PARTITION);
        }
    }

    /** Returns where earlier events of the page's keys wait, once keys have moved between shards or streams were pending. */
    private Map<StreamKey, Set<Integer>> shardsOfWaiting(Connection connection, List<Row> events) {
        Set<StreamKey> keys = new HashSet<>();
        for (Row event : events) {
            String key = event.key();
            if (key != null) {
                keys.add(new StreamKey(event.stream(), key));
            }
        }
        return !mayWait(connection) || keys.isEmpty()
                ? Map.of()
                : outbox.tables().transfer().shardsOfKeys(connection, keys);
    }

    /** Returns whether events of this database's own keys may be in the transfer table. */
    private boolean mayWait(Connection connection) {
        Shard own = outbox.shard();
        if (own != null && outbox.sendsToItself()) {
            // The relay's row is locked: none is added before this transaction ends.
            List<Integer> sent = outbox.tables().transfer().shardsWithEvents(connection, List.of(own.number()));
            outbox.setSendsToItself(!sent.isEmpty());
        }
        return outbox.sendsToItself() || destinations.haveKeysMoved();
    }

    /**
     * Returns the shard that an event is addressed to, behind earlier ones of its key: those that are addressed to a former shard of
     * the key are addressed anew by its sender, in their order.
     */
    private static int shardToFollow(Set<Integer> waiting, Destination to) {
        return waiting.stream()
                .filter(shard -> shard != to.shard().number())
                .findFirst()
                .orElse(to.shard().number());
    }

    /** Returns the ids of the events whose keys' versions were raised when they were published. */
    private Set<Long> takeCounted(Connection connection, List<Row> events) throws SQLException {
        List<Long> candidates = new ArrayList<>();
        for (Row event : events) {
            Destination to = event.key() == null ? null : destinations.of(event);
            if (to != null
                    && to.shard() == outbox.shard()
                    && (to.stream().keyTracking() != KeyTracking.OFF || destinations.isPending(event.stream()))) {
                candidates.add(event.id());
            }
        }
        return candidates.isEmpty() ? Set.of() : outbox.tables().counted().take(connection, candidates);
    }

    private void refuse(Connection connection, Row event, String error) throws SQLException {
        attempt.refused.add(error);
        outbox.tables().refused().insert(connection, event, error);
    }

    private void completeCommitted() {
        refusals.refused(attempt.refused);
        refusal = null;
        suspect.clear();
        destinations.forgetNotFound();
        Shard own = outbox.shard();
        for (int i = 0; i < attempt.firstOffsets.length && own != null; i++) {
            PartitionGroup group = attempt.groups.get(i);
            segments.appended(
                    own, group.stream(), group.partition(), attempt.firstOffsets[i] + group.size(), group.size());
            wakeUp.appended(own, group.streamId(), group.partition());
        }
    }

    /** Removes the cause of a failed transaction if possible; returns whether to retry immediately. */
    private boolean repair(SQLException e) throws SQLException {
        ErrorKind kind = SqlErrors.classify(e);
        boolean rolledBack = kind != ErrorKind.NOT_SENT && kind != ErrorKind.IN_DOUBT;
        if (attempt.page.isEmpty() || (attempt.isReadyToCommit && !rolledBack)) {
            return false;
        }
        if (repair != null && repair.repair(e, attempt.incarnation, attempt.groups)) {
            return true;
        }
        if (SqlErrors.isOtherIncarnation(e) || SqlErrors.isLockTimeout(e)) {
            return false; // no event is the cause
        }
        if (attempt.page.size() > 1) {
            size.halve(attempt.page.size());
            return rolledBack;
        }
        if (SqlErrors.waitsForOthers(e)) { // the events before it were moved; it is not refused
            return false;
        }
        if (!attempt.refused.isEmpty()) {
            return false; // the refused table does not accept it
        }
        long event = attempt.page.getFirst().id();
        if (kind != ErrorKind.CONTENT && !suspect.failed(event)) {
            return false;
        }
        refusal = new Refusal(event, SqlErrors.message(e));
        return true;
    }

    /** Finds out whether another event than the suspect one can be appended: tries that and rolls back. */
    private void probe(RelayLease lease) {
        attempt = new Attempt();
        try {
            outbox.database().transactionIf(connection -> {
                RelayTable.Page page = source.take(connection, lease, size.eventsMax(), size.bytes());
                List<Row> others = findComparable(page.rows());
                if (!others.isEmpty()) {
                    write(connection, page.producer(), List.of(suspect.chooseOther(others)));
                    suspect.anotherSucceeded();
                }
                return false;
            });
        } catch (SQLException e) { // the attempt that follows reports its own failure
            LOG.debug("No other event of outbox {} can be appended, either", outbox, e);
        }
    }

    /** Returns the events that need the same tables as the suspect one. */
    private List<Row> findComparable(List<Row> page) {
        List<Row> suspects =
                page.stream().filter(event -> suspect.is(event.id())).toList();
        Destination to = suspects.isEmpty() ? null : destinations.of(suspects.getFirst());
        if (to == null) {
            return List.of();
        }
        return page.stream()
                .filter(event -> !suspect.is(event.id()) && isSame(to, destinations.of(event)))
                .toList();
    }

    private static boolean isSame(Destination one, @Nullable Destination other) {
        return other != null && other.shard() == one.shard() && other.stream().equals(one.stream());
    }
}
