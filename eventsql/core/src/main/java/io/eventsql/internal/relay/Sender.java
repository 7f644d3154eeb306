package io.eventsql.internal.relay;

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
import io.eventsql.internal.sql.StreamPendingException;
import io.eventsql.internal.sql.TransferTable.Row;
import io.eventsql.internal.sql.TransferredAppend.Target;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the events of one outbox to another shard, page by page in the order of their numbers: reads a page of the transfer
 * table, appends the events that the shard does not have yet, then removes the page in a transaction of the relay.
 *
 * <p>Only the shard knows which events it has: see {@link StoredNumbers}. An event that the shard rejects is found and refused as
 * in {@link PageMover}; its number is then missing in the shard, which is legal. The events of a stream that the shard lacks and
 * cannot get yet are left out until it can: the shard compares numbers by stream, so they may be sent after later ones of other
 * streams. Used by one thread at a time. Uses one connection at a time.
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
    /** The incarnation of the shard's database when the current page was begun. */
    private String incarnation = "";
    /** The number up to which all events were removed, without those of pending streams. */
    private long removed;

    private final MovedEvents moved;
    private final StoredNumbers stored;
    /** The number of the slot map when that was queried: what the shard has is queried again after it has closed slots. */
    private long slotsKnown = -1;
    /** The reasons for which the shard rejects events, by the event's number. */
    private final Map<Long, String> refusals = new HashMap<>();

    private final RefusalLog refusalLog;
    private final SuspectEvent suspect = new SuspectEvent();
    private final AppendRepair repair;
    private final Set<String> missingStreams = new HashSet<>();
    /** The streams that the shard lacks and cannot get yet. */
    private final Set<String> pendingStreams = new HashSet<>();

    private final FailureSeries lookUpFailures = new FailureSeries();
    /** When pending streams are looked up next (nano time). */
    private long lookUpNanos;

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
        this.stored = new StoredNumbers(shard, acknowledged);
        this.moved = new MovedEvents(outbox, shard, shards);
        this.refusalLog = new RefusalLog(outbox);
        this.repair = new AppendRepair(shard, segments, new StreamsOfShard());
    }

    /** The shard remembers the ids of its streams itself; the sender only which streams do not exist. */
    private final class StreamsOfShard implements AppendRepair.KnownStreams {
        @Override
        public boolean refresh(Set<StreamSpec> rejected) throws SQLException {
            boolean changed = false;
            for (StreamSpec stream : rejected) {
                PartitionMap before = shard.streams().map(stream);
                shard.streams().forget(stream.name());
                // If the shard does not have it, it may have been created anew on the others: lookUpStreams finds out.
                changed |= shard.streams().find(stream.name()).isEmpty()
                        || !shard.streams().map(stream).equals(before);
            }
            return changed;
        }

        @Override
        public void forgetAll() {
            stored.forget();
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

        final MovedEvents.Found moved = new MovedEvents.Found();

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
            stored.begin(outbox.database().read(outbox.tables().relay()::outboxId));
            lease = current;
            removed = 0;
            pendingStreams.clear();
        }
        if (suspect.isProbeDue()) {
            probe();
        }
        lookUpPending();
        List<Row> page = readPage(size.events());
        if (page.isEmpty()) {
            return false;
        }
        UnsentEvents unsent = null;
        try {
            incarnation = shard.incarnation(); // before the ids of the streams
            Map<String, StreamSpec> specs = lookUpStreams(page);
            if (page.stream().map(Row::stream).anyMatch(pendingStreams::contains)) {
                return true; // the next page is without them
            }
            unsent = findUnsent(page, specs);
            if (unsent.moved.isEmpty() && unsent.events > 0) {
                append(unsent);
            }
        } catch (SQLException e) {
            stored.forget();
            if (repair(e, page, unsent)) {
                return true;
            }
            throw new ShardFailedException(e);
        }
        if (!unsent.moved.isEmpty()) { // before others of the page: what the shard has is known by the greatest number
            if (moved.areSlotsCurrent(unsent.moved)) {
                moved.readdress(current, unsent.moved);
                readdressed.accept(unsent.moved.shards());
            }
            return true;
        }
        try {
            remove(current, page);
        } catch (SQLException e) {
            stored.forget(); // until the page is removed, only the shard knows what it has
            throw e;
        }
        suspect.clear();
        size.grow();
        return true;
    }

    private List<Row> readPage(int limit) throws SQLException {
        return ofOneProducer(outbox.database()
                .read(c -> outbox.tables()
                        .transfer()
                        .page(c, shard.number(), removed, limit, size.bytes(), pendingStreams)));
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
     *
     * @param specs the streams of the page: a stream may have slots of its own, which are known since it was looked up
     */
    private UnsentEvents findUnsent(List<Row> page, Map<String, StreamSpec> specs) throws SQLException {
        Map<String, PartitionMap> maps = new HashMap<>();
        specs.forEach((name, stream) -> maps.put(name, shard.streams().map(stream)));
        // After the maps: the shard rejects an outdated map, but not outdated slots.
        SlotMap slots = shards.slots();
        if (slots.number() != slotsKnown) {
            stored.forget(); // an append that is late was stored before the shard has closed the slots, or is rejected
            slotsKnown = slots.number();
        }
        UnsentEvents unsent = new UnsentEvents(page.getFirst().producer());
        Map<Target, Long> lastNumbers = stored.lastNumbers(incarnation, unsent.producer, specs.values());
        Map<Integer, Long> ofStreams = new HashMap<>();
        lastNumbers.forEach((target, number) -> ofStreams.merge(target.streamId(), number, Math::max));
        Map<Target, PartitionGroup> groups = new LinkedHashMap<>();
        Map<Target, Long> numbers = new HashMap<>();
        Map<Target, List<Integer>> erased = new HashMap<>();
        for (Row event : page) {
            StreamSpec stream = specs.get(event.stream());
            if (stream == null || refusals.containsKey(event.number())) {
                continue;
            }
            PartitionMap map = Objects.requireNonNull(maps.get(event.stream()));
            Target target = new Target(shard.streams().ensure(stream), partition(event, map));
            int owner = moved.owner(event, slots.of(stream.name()));
            boolean isStored = ofStreams.getOrDefault(target.streamId(), Long.MIN_VALUE) >= event.number();
            if (!isStored && owner != shard.number()) {
                unsent.moved.add(event, owner);
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

    /** Returns the streams of a page, without those that do not exist, or that the shard cannot get yet. */
    private Map<String, StreamSpec> lookUpStreams(List<Row> page) throws SQLException {
        Map<String, StreamSpec> specs = new HashMap<>();
        for (Row event : page) {
            String name = event.stream();
            if (!specs.containsKey(name) && !missingStreams.contains(name) && !pendingStreams.contains(name)) {
                try {
                    specs.put(name, streams.requireOn(shard, name));
                } catch (UnknownStreamException e) {
                    missingStreams.add(name);
                } catch (StreamPendingException e) {
                    pendingStreams.add(name);
                    postpone(name, e);
                }
            }
        }
        return specs;
    }

    private void postpone(String stream, StreamPendingException e) {
        FailureSeries.Failure failure = lookUpFailures.add(SqlErrors.message(e));
        lookUpNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(failure.retryMs());
        if (failure.isNew()) {
            LOG.warn(
                    "{} does not have stream {} yet; outbox {} keeps its events for it and retries in {} ms: {}",
                    shard,
                    stream,
                    outbox,
                    failure.retryMs(),
                    SqlErrors.message(e));
        }
    }

    /** Looks up the pending streams, if that is due; those that are no longer pending are next. */
    private void lookUpPending() throws ShardFailedException {
        if (pendingStreams.isEmpty() || untilLookUpNanos() > 0) {
            return;
        }
        for (String name : List.copyOf(pendingStreams)) {
            try {
                streams.requireOn(shard, name);
                removePending(name);
            } catch (UnknownStreamException e) { // its events are refused
                removePending(name);
            } catch (StreamPendingException e) {
                postpone(name, e);
            } catch (SQLException e) {
                throw new ShardFailedException(e);
            }
        }
        if (pendingStreams.isEmpty()) {
            lookUpFailures.end();
            LOG.info("Outbox {} no longer keeps events for streams that {} did not have", outbox, shard);
        }
    }

    private void removePending(String stream) {
        pendingStreams.remove(stream);
        removed = 0;
    }

    /** Returns whether events wait for streams that the shard lacks. */
    boolean hasPending() {
        return !pendingStreams.isEmpty();
    }

    /** Returns in which time these streams are looked up next; negative if that is overdue. */
    long untilLookUpNanos() {
        return lookUpNanos - System.nanoTime();
    }

    private void append(UnsentEvents unsent) throws SQLException {
        long[] firstOffsets = shard.require().replicatedCall(c -> execute(c, unsent));
        for (int i = 0; i < firstOffsets.length; i++) {
            PartitionGroup group = unsent.groups.get(i);
            stored.appended(unsent.producer, new Target(group.streamId(), group.partition()), unsent.numbers.get(i));
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
            List<Row> chosen = List.of(suspect.chooseOther(others));
            UnsentEvents other = findUnsent(chosen, lookUpStreams(chosen));
            if (other.events > 0) {
                shard.require().transactionIf(c -> {
                    execute(c, other);
                    suspect.anotherSucceeded();
                    return false;
                });
            }
        } catch (SQLException e) { // the attempt that follows reports its own failure
            stored.forget();
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
            outbox.tables().transfer().delete(connection, shard.number(), removed, last, pendingStreams);
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
        // Removed alone: once a later event was stored, it would count as stored if this process ended before.
        size.limit(1);
        refusals.put(event, SqlErrors.message(e));
        return true;
    }
}
