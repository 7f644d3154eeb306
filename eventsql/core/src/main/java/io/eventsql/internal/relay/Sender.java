package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.append.AcknowledgedBatches;
import io.eventsql.internal.append.PartitionGroup;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.TransferTable.Row;
import io.eventsql.internal.sql.TransferredAppend.Target;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the events of one outbox to another shard, page by page in the order of their numbers: reads a page of the transfer
 * table, appends the events that the shard does not have yet, then removes the page in a transaction of the relay.
 *
 * <p>Only the shard knows which events it has: the sender queries it at the beginning of a lease and after every failure.
 * An event that the shard rejects is found and refused as in {@link PageMover}; its number is then missing in the shard,
 * which is legal. Used by one thread at a time. Uses one connection at a time.
 */
final class Sender {
    private static final Logger LOG = LoggerFactory.getLogger(Sender.class);

    private final OutboxDatabase outbox;
    private final Shard shard;
    private final Shards shards;
    private final StreamRegistry streams;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final PageSize size;
    /** What this process has removed from the outbox because the shard has stored it. */
    private final AcknowledgedBatches acknowledged;
    /** Signals that there are events for other shards. */
    private final Consumer<Collection<Integer>> readdressed;

    private @Nullable RelayLease lease;
    /** Identifies the outbox to the shard; {@code null} until it was read. */
    private @Nullable UUID outboxId;
    /** The incarnation of the shard's database when the current page was begun. */
    private String incarnation = "";
    /** The number up to which all events were removed. */
    private long removed;
    /** The state of the shard by producer, as far as it was queried. */
    private final Map<UUID, Known> known = new HashMap<>();
    /** The number of the slot map when that was queried: what the shard has is queried again after it has closed slots. */
    private long slotsKnown = -1;
    /** The reasons for which the shard rejects events, by the event's number. */
    private final Map<Long, String> refusals = new HashMap<>();

    private final RefusalLog refusalLog;
    private final SuspectEvent suspect = new SuspectEvent();
    private final AppendRepair repair;
    private final Set<String> missingStreams = new HashSet<>();

    /**
     * The shard's state for one producer.
     *
     * @param streamIds the streams queried
     * @param lastNumbers the number of the last event in each of their partitions
     */
    private record Known(Set<Integer> streamIds, Map<Target, Long> lastNumbers) {}

    Sender(
            OutboxDatabase outbox,
            Shard shard,
            Shards shards,
            StreamRegistry streams,
            SegmentKeeper segments,
            WakeUp wakeUp,
            PageSize size,
            AcknowledgedBatches acknowledged,
            Consumer<Collection<Integer>> readdressed) {
        this.readdressed = readdressed;
        this.outbox = outbox;
        this.shard = shard;
        this.shards = shards;
        this.streams = streams;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.size = size;
        this.acknowledged = acknowledged;
        this.refusalLog = new RefusalLog(outbox);
        this.repair = new AppendRepair(shard, segments, new StreamsOfShard());
    }

    /** The shard remembers the ids of its streams itself; the sender only which streams do not exist. */
    private final class StreamsOfShard implements AppendRepair.KnownStreams {
        @Override
        public boolean refresh(Set<StreamSpec> rejected) throws SQLException {
            boolean missing = false;
            boolean grown = false;
            for (StreamSpec stream : rejected) {
                PartitionMap before = shard.map(stream);
                shard.forgetStream(stream.name());
                if (shard.findStream(stream.name()).isEmpty()) {
                    missing |= missingStreams.add(stream.name());
                } else {
                    grown |= !shard.map(stream).equals(before);
                }
            }
            return missing || grown;
        }

        @Override
        public void forgetAll() {
            known.clear();
        }
    }

    /** The events of a page that the shard does not have yet. */
    private static final class UnsentEvents {
        final UUID producer;
        final List<PartitionGroup> groups = new ArrayList<>();
        final List<@Nullable Long> afters = new ArrayList<>();
        final List<Long> numbers = new ArrayList<>();
        /** The positions of erased events among all, from 1. */
        final List<Integer> erased = new ArrayList<>();

        /** The numbers of events whose keys belong to other shards now, and these shards. */
        final List<Long> moved = new ArrayList<>();

        final List<Integer> movedTo = new ArrayList<>();

        final Set<String> movedStreams = new HashSet<>();

        int events;

        UnsentEvents(UUID producer) {
            this.producer = producer;
        }
    }

    /** Thrown if the shard failed or is unavailable, as opposed to the outbox's database. */
    static final class ShardFailedException extends SQLException {
        private static final long serialVersionUID = 1L;

        ShardFailedException(SQLException cause) {
            super(cause.getMessage(), cause.getSQLState(), cause);
        }
    }

    /**
     * Sends one page.
     *
     * @return whether there may be more
     * @throws ShardFailedException if the shard did not accept the page; can be retried
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    boolean send(RelayLease current) throws SQLException {
        if (!current.equals(lease)) {
            outboxId = outbox.database().read(outbox.tables().relay()::outboxId);
            lease = current;
            removed = 0;
            known.clear();
        }
        if (suspect.isProbeDue()) {
            probe();
        }
        List<Row> page = readPage(size.events());
        if (page.isEmpty()) {
            return false;
        }
        UnsentEvents unsent = null;
        try {
            incarnation = shard.incarnation(); // before the ids of the streams
            unsent = findUnsent(page);
            if (unsent.moved.isEmpty() && unsent.events > 0) {
                append(unsent);
            }
        } catch (SQLException e) {
            known.clear();
            if (repair(e, page, unsent)) {
                return true;
            }
            throw new ShardFailedException(e);
        }
        if (!unsent.moved.isEmpty()) { // before others of the page: what the shard has is known by the greatest number
            if (areSlotsCurrent(unsent)) {
                readdress(current, unsent);
            }
            return true;
        }
        try {
            remove(current, page);
        } catch (SQLException e) {
            known.clear(); // until the page is removed, only the shard knows what it has
            throw e;
        }
        suspect.clear();
        size.grow();
        return true;
    }

    private List<Row> readPage(int limit) throws SQLException {
        return ofOneProducer(outbox.database()
                .read(c -> outbox.tables().transfer().page(c, shard.number(), removed, limit, size.bytes())));
    }

    private static List<Row> ofOneProducer(List<Row> page) {
        int end = 0;
        while (end < page.size()
                && page.get(end).producer().equals(page.getFirst().producer())) {
            end++;
        }
        return page.subList(0, end);
    }

    /**
     * Returns the events that the shard does not have yet, by partition in the lock order. A page is stored as a whole, and pages in
     * the order of their numbers: so the shard has all events of a stream up to the greatest number that any of its partitions has,
     * also those whose keys belong to another partition since.
     */
    private UnsentEvents findUnsent(List<Row> page) throws SQLException {
        SlotMap slots = shards.slots();
        if (slots.number() != slotsKnown) {
            known.clear(); // an append that is late was stored before the shard has closed the slots, or is rejected
            slotsKnown = slots.number();
        }
        Map<String, StreamSpec> specs = lookUpStreams(page);
        UnsentEvents unsent = new UnsentEvents(page.getFirst().producer());
        Map<Target, Long> lastNumbers = fetchLastNumbers(unsent.producer, specs.values());
        Map<Integer, Long> stored = new HashMap<>();
        lastNumbers.forEach((target, number) -> stored.merge(target.streamId(), number, Math::max));
        Map<String, PartitionMap> maps = new HashMap<>();
        specs.forEach((name, stream) -> maps.put(name, shard.map(stream)));
        Map<Target, PartitionGroup> groups = new LinkedHashMap<>();
        Map<Target, Long> numbers = new HashMap<>();
        Map<Target, List<Integer>> erased = new HashMap<>();
        for (Row event : page) {
            StreamSpec stream = specs.get(event.stream());
            if (stream == null || refusals.containsKey(event.number())) {
                continue;
            }
            PartitionMap map = Objects.requireNonNull(maps.get(event.stream()));
            Target target = new Target(shard.ensureStream(stream), partition(event, map));
            int owner = owner(event, slots.of(stream.name()));
            boolean isStored = stored.getOrDefault(target.streamId(), Long.MIN_VALUE) >= event.number();
            if (!isStored && owner != shard.number()) {
                unsent.moved.add(event.number());
                unsent.movedTo.add(owner);
                unsent.movedStreams.add(event.stream());
            } else if (!isStored) {
                PartitionGroup group = groups.computeIfAbsent(
                        target, t -> new PartitionGroup(stream, t.streamId(), t.partition(), map.version()));
                group.add(event.key(), event.value(), event.headers());
                if (event.isErased()) {
                    erased.computeIfAbsent(target, t -> new ArrayList<>()).add(group.size());
                }
                numbers.put(target, event.number());
                unsent.events++;
            }
        }
        unsent.groups.addAll(groups.values());
        unsent.groups.sort(null);
        int before = 0;
        for (PartitionGroup group : unsent.groups) {
            Target target = new Target(group.streamId(), group.partition());
            for (int position : erased.getOrDefault(target, List.of())) {
                unsent.erased.add(before + position);
            }
            before += group.size();
            unsent.afters.add(lastNumbers.get(target));
            unsent.numbers.add(numbers.getOrDefault(target, 0L));
        }
        return unsent;
    }

    /** An event waits in the outbox for any time: where its key belongs is known only when it is sent. */
    private static int partition(Row event, PartitionMap map) {
        String key = event.key();
        return key == null ? event.partition() % map.partitions() : map.partition(KeyHash.of(key));
    }

    /** Returns the shard that an event belongs to now. Those without a key stay, unless the shard has left. */
    private int owner(Row event, SlotMap slots) {
        String key = event.key();
        if (key != null) {
            return slots.owner(KeyHash.slot(KeyHash.of(key)));
        } else if (slots.hasSlots(shard.number())) {
            return shard.number();
        }
        List<Integer> others = shards.numbered().stream()
                .map(Shard::number)
                .filter(slots::hasSlots)
                .toList();
        return others.get(event.partition() % others.size());
    }

    /**
     * Reads the streams of events that seem to belong elsewhere once more: a stream may stay while the slots of others move.
     * Reads them there, too, because a shard that has closed slots says so itself: sent back to it, the events would arrive
     * after later ones of their keys. Not if this shard knows a later slot map: then it has closed the slots.
     */
    private boolean areSlotsCurrent(UnsentEvents unsent) throws SQLException {
        SlotMap before = shards.slots();
        try {
            readSlots(shard, unsent.movedStreams);
        } catch (SQLException e) {
            throw new ShardFailedException(e);
        }
        for (int number : new TreeSet<>(unsent.movedTo)) {
            Shard owner = shards.get(number);
            // If it is not configured, this process cannot send to it, either.
            if (owner.isConfigured() && owner.mapVersion() >= shard.mapVersion()) {
                try {
                    readSlots(owner, unsent.movedStreams);
                } catch (SQLException e) {
                    throw new SQLException(
                            "keys have moved to " + owner + ", which is unavailable: " + SqlErrors.message(e),
                            e.getSQLState(),
                            e);
                }
            }
        }
        return shards.slots() == before;
    }

    private static void readSlots(Shard of, Set<String> streamNames) throws SQLException {
        for (String stream : streamNames) {
            if (of.findStream(stream).isEmpty()) {
                of.readSlots();
            }
        }
    }

    private void readdress(RelayLease current, UnsentEvents unsent) throws SQLException {
        outbox.database().transaction(connection -> {
            outbox.tables().relay().lock(connection, current);
            outbox.tables().transfer().readdress(connection, shard.number(), unsent.moved, unsent.movedTo);
            return unsent;
        });
        readdressed.accept(new TreeSet<>(unsent.movedTo));
    }

    /** Returns the streams of a page, without those that do not exist. */
    private Map<String, StreamSpec> lookUpStreams(List<Row> page) throws SQLException {
        Map<String, StreamSpec> specs = new HashMap<>();
        for (Row event : page) {
            String name = event.stream();
            if (!specs.containsKey(name) && !missingStreams.contains(name)) {
                try {
                    StreamSpec stream = streams.require(name);
                    shard.ensureStream(stream);
                    specs.put(name, stream);
                } catch (UnknownStreamException e) {
                    missingStreams.add(name);
                } catch (EventSqlException e) {
                    throw new SQLTransientConnectionException(e.getMessage(), "08001", e);
                }
            }
        }
        return specs;
    }

    private Map<Target, Long> fetchLastNumbers(UUID producer, Iterable<StreamSpec> specs) throws SQLException {
        UUID outboxOfProducer = Objects.requireNonNull(outboxId);
        Known ofProducer = known.computeIfAbsent(producer, p -> new Known(new HashSet<>(), new HashMap<>()));
        Set<Integer> unknown = new HashSet<>();
        for (StreamSpec stream : specs) {
            unknown.add(shard.ensureStream(stream));
        }
        unknown.removeAll(ofProducer.streamIds());
        if (!unknown.isEmpty()) {
            int[] streamIds = unknown.stream().mapToInt(Integer::intValue).toArray();
            Map<Target, Long> found = shard.require()
                    .replicatedTransaction(c -> shard.tables()
                            .outbox()
                            .append()
                            .registerOutbox(c, incarnation, outboxOfProducer, producer, streamIds));
            for (StreamSpec stream : specs) {
                recordStored(producer, stream, found.keySet());
            }
            ofProducer.lastNumbers().putAll(found);
            ofProducer.streamIds().addAll(unknown);
        }
        return ofProducer.lastNumbers();
    }

    /** What an earlier lease, another process or an append in doubt has stored must not get lost silently, either. */
    private void recordStored(UUID producer, StreamSpec stream, Set<Target> targets) throws SQLException {
        int streamId = shard.ensureStream(stream);
        List<Integer> partitions = targets.stream()
                .filter(target -> target.streamId() == streamId)
                .map(Target::partition)
                .toList();
        if (!partitions.isEmpty()) {
            acknowledged.recordStored(producer, stream.name(), partitions);
        }
    }

    private void append(UnsentEvents unsent) throws SQLException {
        long[] firstOffsets = shard.require().replicatedCall(c -> execute(c, unsent));
        Map<Target, Long> lastNumbers = fetchLastNumbers(unsent.producer, List.of());
        for (int i = 0; i < firstOffsets.length; i++) {
            PartitionGroup group = unsent.groups.get(i);
            lastNumbers.put(new Target(group.streamId(), group.partition()), unsent.numbers.get(i));
            acknowledged.record(unsent.producer, unsent.numbers.get(i), group, firstOffsets[i]);
            segments.appended(shard, group.stream(), group.partition(), firstOffsets[i] + group.size(), group.size());
            wakeUp.appended(shard, group.streamId(), group.partition());
        }
    }

    private long[] execute(Connection connection, UnsentEvents unsent) throws SQLException {
        return shard.tables()
                .outbox()
                .append()
                .execute(
                        connection,
                        unsent.producer,
                        MapFence.of(PartitionGroup.mapVersions(unsent.groups)),
                        incarnation,
                        PartitionGroup.toRows(unsent.groups),
                        unsent.afters,
                        unsent.numbers,
                        unsent.erased);
    }

    /** Finds out whether the shard accepts another event than the suspect one: tries that and rolls back. */
    private void probe() throws SQLException {
        List<Row> page = readPage(size.eventsMax());
        List<String> streamsOfSuspect = page.stream()
                .filter(event -> suspect.is(event.number()))
                .map(Row::stream)
                .toList();
        List<Row> others = page.stream()
                .filter(event -> !suspect.is(event.number()) && streamsOfSuspect.contains(event.stream()))
                .toList();
        if (others.isEmpty()) {
            return;
        }
        try {
            incarnation = shard.incarnation(); // before the ids of the streams
            UnsentEvents other = findUnsent(List.of(suspect.chooseOther(others)));
            if (other.events > 0) {
                shard.require().transactionIf(c -> {
                    execute(c, other);
                    suspect.anotherSucceeded();
                    return false;
                });
            }
        } catch (SQLException e) { // the attempt that follows reports its own failure
            known.clear();
            LOG.debug("Shard {} accepts no other event of outbox {}, either", shard, outbox, e);
        }
    }

    /** Removes a page whose events the shard has stored or can never store. */
    private void remove(RelayLease current, List<Row> page) throws SQLException {
        long last = page.getLast().number();
        List<String> errors = new ArrayList<>();
        outbox.database().transaction(connection -> {
            outbox.tables().relay().lock(connection, current);
            for (Row event : page) {
                String error = missingStreams.contains(event.stream())
                        ? "there is no stream " + event.stream()
                        : refusals.get(event.number());
                if (error != null) {
                    errors.add(error);
                    refuse(connection, event, error);
                }
            }
            outbox.tables().transfer().delete(connection, shard.number(), removed, last);
            return last;
        });
        refusalLog.refused(errors);
        removed = last;
        refusals.clear();
        missingStreams.clear();
    }

    private void refuse(Connection connection, Row event, String error) throws SQLException {
        outbox.tables().refused().move(connection, shard.number(), event.number(), error);
    }

    /** Removes the cause of a failed append if possible; returns whether to resend the page immediately. */
    private boolean repair(SQLException e, List<Row> page, @Nullable UnsentEvents unsent) throws SQLException {
        String state = SqlErrors.state(e);
        if (repair.repair(e, incarnation, unsent == null ? List.of() : unsent.groups)) {
            return true;
        }
        if (unsent == null || SqlErrors.isOtherIncarnation(e)) {
            return false;
        }
        if (state.equals(SqlErrors.NOT_NEXT)) {
            return true; // an earlier attempt was stored after all: query again what the shard has
        }
        if (state.equals(SqlErrors.NOT_READ_COMMITTED)) {
            return true; // from now on each append begins its own transaction
        }
        ErrorKind kind = SqlErrors.classify(e);
        if (kind == ErrorKind.NOT_SENT || kind == ErrorKind.IN_DOUBT) {
            return false;
        }
        if (SqlErrors.isLockTimeout(e)) {
            return false; // no event is the cause
        }
        if (page.size() > 1) {
            size.halve(page.size());
            return true;
        }
        if (SqlErrors.waitsForOthers(e)) { // the events before it were sent; it is not refused
            return false;
        }
        long event = page.getFirst().number();
        if (kind != ErrorKind.CONTENT && !suspect.failed(event)) {
            return false;
        }
        refusals.put(event, SqlErrors.message(e));
        return true;
    }
}
