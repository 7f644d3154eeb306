package io.eventsql.internal.consume;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.Tables;
import io.eventsql.internal.sql.ConsumerTable;
import io.eventsql.internal.sql.ParkedEventTable.Row;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Inspects and controls a consumer: each change is one transaction on each shard, and a signal after it. A seek frees the
 * partitions that it moves and raises their epochs, so that commits of their former owners are refused. Thread-safe.
 */
final class Control implements ConsumerControl {
    private static final Logger LOG = LoggerFactory.getLogger(Control.class);
    private static final int SEEK_ATTEMPTS_MAX = 40;
    private static final long NOT_COUNTED = -1;
    private static final int BEFORE_ALL_VERSIONS = -1;
    /** The parked events go with the consumer; a million of them takes seconds. */
    private static final Duration DELETE_TIME_MAX = Duration.ofMinutes(5);

    private final Shards shards;
    private final StreamSpec stream;
    private final String consumer;
    private final WakeUp wakeUp;

    Control(Shards shards, StreamSpec stream, String consumer, WakeUp wakeUp) {
        this.shards = shards;
        this.stream = stream;
        this.consumer = consumer;
        this.wakeUp = wakeUp;
    }

    /** Statements on one shard, in a transaction. */
    @FunctionalInterface
    private interface Work<T> {
        T run(Connection connection, Shard shard, int consumerId) throws SQLException;
    }

    @Override
    public List<PartitionState> state() {
        List<PartitionState> states = new ArrayList<>();
        for (Shard shard : shards.all()) {
            call(
                            "read the state of",
                            shard,
                            (c, s, id) -> s.tables().consumerStatus().states(c, s.number(), id))
                    .ifPresent(states::addAll);
        }
        return states;
    }

    @Override
    public void pause() {
        change("pause", (c, shard, id) -> {
            shard.tables().leases().pause(c, id);
            return 0L;
        });
    }

    @Override
    public void resume() {
        change("resume", (c, shard, id) -> {
            shard.tables().leases().resume(c, id);
            return 0L;
        });
    }

    @Override
    public void seek(StartPosition position) {
        requireGiven("position", position);
        if (position.offset() >= 0) {
            requireExisting(position.offset());
        }
        boolean known = false;
        // Those that wait for others after these: a member may report in between that these are still handled.
        Map<Shard, Integer> next = nextVersions(BEFORE_ALL_VERSIONS);
        while (!next.isEmpty()) {
            int version = Collections.min(next.values());
            for (var each : next.entrySet()) {
                if (each.getValue() == version) {
                    known |= seekOn(each.getKey(), version, (c, s, id) -> seekAll(c, s, id, position, version))
                            .isPresent();
                }
            }
            next = nextVersions(version);
        }
        requireKnown(known);
    }

    /** Returns for each shard the lowest version of the consumer's partitions above this one, if there is one. */
    private Map<Shard, Integer> nextVersions(int version) {
        Map<Shard, Integer> next = new LinkedHashMap<>();
        for (Shard shard : shards.all()) {
            call(
                            "move",
                            shard,
                            (c, s, id) ->
                                    s.tables().shardBarriers().versions(c, id).values())
                    .ifPresent(versions -> versions.stream()
                            .filter(each -> each > version)
                            .min(Comparator.naturalOrder())
                            .ifPresent(lowest -> next.put(shard, lowest)));
        }
        return next;
    }

    /** Rejects the offset before any partition is moved. One that retention removes afterwards is out of range. */
    private void requireExisting(long offset) {
        for (Shard shard : shards.all()) {
            call("read the positions of", shard, (c, s, id) -> {
                for (int partition : s.tables().consumers().partitions(c, id)) {
                    requireExisting(c, s, partition, offset);
                }
                return 0L;
            });
        }
    }

    private void requireExisting(Connection connection, Shard shard, int partition, long offset) {
        ConsumerTable consumers = shard.tables().consumers();
        long logStart = consumers.offset(connection, stream.name(), partition, StartPosition.EARLIEST);
        long head = consumers.offset(connection, stream.name(), partition, StartPosition.LATEST);
        if (offset < logStart || offset > head) {
            throw new InvalidInputException(
                    "position.offset",
                    "must be between " + logStart + " (log start) and " + head + " (head) in partition " + partition
                            + " of stream " + stream.name() + " on " + shard + ", but is " + offset);
        }
    }

    /** Moves the partitions of a version. By one statement: the rows that it locks keep heartbeats and commits from theirs. */
    private long seekAll(Connection connection, Shard shard, int consumerId, StartPosition position, int version) {
        Tables tables = shard.tables();
        Map<Integer, Integer> versions = tables.shardBarriers().versions(connection, consumerId);
        Map<Integer, Long> offsets =
                new TreeMap<>(tables.consumers().offsets(connection, consumerId, stream.name(), position));
        offsets.keySet().removeIf(partition -> !Objects.equals(versions.get(partition), version));
        return tables.leases().seek(connection, consumerId, offsets);
    }

    @Override
    public void seek(EventPosition position) {
        requireOwn(position);
        Shard shard = shards.get(position.shard());
        Optional<Long> moved = seekOn(shard, BEFORE_ALL_VERSIONS, (c, s, id) -> {
            requireExisting(c, s, position.partition(), position.offset());
            return (long) s.tables().leases().seek(c, id, Map.of(position.partition(), position.offset()));
        });
        requireKnown(moved.isPresent());
    }

    /**
     * Moves the consumer on a shard. Where keys have moved to other shards, these record it before: they hold the keys back until the
     * consumer has handled the former events again. If the process dies in between, nothing has moved, and the members release the
     * others after a while.
     *
     * @param version the lowest one of the partitions that it moves: only those of higher ones wait for them
     */
    private Optional<Long> seekOn(Shard shard, int version, Work<Long> seek) {
        for (int attempt = 1; attempt <= SEEK_ATTEMPTS_MAX; attempt++) {
            int mapVersion = shard.mapVersion();
            Map<Shard, Long> seeks = readSeeks(mapVersion == 1 ? List.of(shard) : shards.all());
            Long own = seeks.get(shard);
            if (own == null) {
                return Optional.empty();
            }
            if (mapVersion > 1) {
                for (Shard receiver : shards.all()) {
                    hold(receiver, seeks, version);
                }
            }
            Optional<Long> moved = changeOn(
                    "move",
                    shard,
                    (c, s, id) -> s.tables().shardBarriers().countSeek(c, id, own, mapVersion)
                            ? seek.run(c, s, id)
                            : NOT_COUNTED);
            if (moved.isEmpty() || moved.get() != NOT_COUNTED) {
                if (mapVersion > 1) {
                    seeks.remove(shard);
                    countNothingMoved(seeks, mapVersion);
                }
                return moved;
            }
            try { // another call has moved the consumer, or keys have moved
                shard.readSlots();
            } catch (SQLException e) {
                throw new EventSqlException("Could not read the slots of " + shard + ": " + e.getMessage(), e);
            }
        }
        throw new EventSqlException("Could not move consumer " + consumer + " of stream " + stream.name() + " on "
                + shard + ", because other calls move it at the same time; retry the call");
    }

    /** Counts on other shards, where the consumer was not moved: what members read there from now on is accepted again. */
    private void countNothingMoved(Map<Shard, Long> seeks, int mapVersion) {
        for (var each : seeks.entrySet()) {
            try {
                changeOn(
                        "move",
                        each.getKey(),
                        (c, s, id) ->
                                s.tables().shardBarriers().countSeek(c, id, each.getValue(), mapVersion) ? 1L : 0L);
            } catch (EventSqlException e) {
                LOG.debug("Consumer {} of stream {} waits until members count it", consumer, stream.name(), e);
            }
        }
    }

    /** Returns how often the consumer was moved on each shard that knows it. */
    private Map<Shard, Long> readSeeks(List<Shard> of) {
        Map<Shard, Long> seeks = new LinkedHashMap<>();
        for (Shard each : of) {
            call("move", each, (c, s, id) -> s.tables().shardBarriers().seeks(c, id, s.number()))
                    .ifPresent(number -> seeks.put(each, number));
        }
        return seeks;
    }

    private void hold(Shard receiver, Map<Shard, Long> seeks, int version) {
        Map<Integer, Long> next = new TreeMap<>();
        seeks.forEach((giver, number) -> {
            if (giver != receiver) {
                next.put(giver.number(), number + 1);
            }
        });
        changeOn("hold", receiver, (c, s, id) -> {
            s.tables().shardBarriers().holdReceivers(c, id, next.keySet(), next.values(), version);
            return 0L;
        });
    }

    private void requireKnown(boolean known) {
        if (!known) {
            throw new EventSqlException("There is no consumer " + consumer + " of stream " + stream.name());
        }
    }

    @Override
    public List<ParkedEvent> parkedEvents(int max) {
        requireMax(max);
        List<ParkedEvent> events = new ArrayList<>();
        for (Shard shard : shards.all()) {
            if (events.size() < max) {
                call(
                                "read the parked events of",
                                shard,
                                (c, s, id) -> s.tables().parkedEvents().list(c, id, max - events.size()))
                        .ifPresent(rows -> rows.forEach(row -> events.add(parkedEvent(shard, row))));
            }
        }
        return events;
    }

    private static void requireMax(int max) {
        if (max < 1 || max > ConsumerSpec.PAGE_EVENTS_MAX) {
            throw new InvalidInputException(
                    "max", "must be between 1 and " + ConsumerSpec.PAGE_EVENTS_MAX + ", but is " + max);
        }
    }

    private ParkedEvent parkedEvent(Shard shard, Row row) {
        EventPosition position = new EventPosition(stream.name(), shard.number(), row.partition(), row.offset());
        @Nullable Long copy = row.deadLetterOffset();
        @Nullable String copies = row.deadLetterStream();
        return new ParkedEvent(
                new StoredEvent(position, row.key(), row.value(), row.headers(), row.publishedAt(), row.valueState()),
                consumer,
                copy == null || copies == null
                        ? null
                        : new EventPosition(copies, shard.number(), row.partition(), copy),
                row.error(),
                row.attempts(),
                row.parkedAt(),
                row.redriving());
    }

    @Override
    public long redrive() {
        return change("redrive", (c, shard, id) -> {
            long events = 0;
            for (int partition : shard.tables().consumers().partitions(c, id)) {
                events += shard.tables().parkedEvents().requestRedrive(c, id, partition, null);
            }
            return events;
        });
    }

    @Override
    public long redrive(Collection<EventPosition> positions) {
        return changeParkedEvents(
                "redrive",
                positions,
                (c, shard, id, partition, offsets) ->
                        shard.tables().parkedEvents().requestRedrive(c, id, partition, offsets));
    }

    @Override
    public long drop(Collection<EventPosition> positions) {
        return changeParkedEvents(
                "drop",
                positions,
                (c, shard, id, partition, offsets) ->
                        shard.tables().parkedEvents().drop(c, id, partition, offsets));
    }

    /** First on all shards it has to handle again what came before on others, if it is created anew. */
    @Override
    public void delete() {
        if (shards.haveMoved()) {
            Map<Shard, Long> seeks = readSeeks(shards.all());
            seeks.keySet().forEach(receiver -> hold(receiver, seeks, BEFORE_ALL_VERSIONS));
        }
        change("delete", (c, shard, id) -> {
            shard.require().allowLongStatements(c, DELETE_TIME_MAX);
            shard.tables().consumers().delete(c, id);
            return 0L;
        });
    }

    /** Statements about parked events of one partition, in a transaction. */
    @FunctionalInterface
    private interface ParkedEventWork {
        long run(Connection connection, Shard shard, int consumerId, int partition, long[] offsets);
    }

    private long changeParkedEvents(String action, Collection<EventPosition> positions, ParkedEventWork work) {
        requireGiven("positions", positions);
        positions.forEach(this::requireOwn);
        Map<Integer, Map<Integer, List<Long>>> offsets = positions.stream()
                .collect(Collectors.groupingBy(
                        EventPosition::shard,
                        Collectors.groupingBy(
                                EventPosition::partition,
                                TreeMap::new,
                                Collectors.mapping(EventPosition::offset, Collectors.toList()))));
        return change(action, (c, shard, id) -> {
            long events = 0;
            for (var entry : offsets.getOrDefault(shard.number(), Map.of()).entrySet()) {
                long[] ofPartition =
                        entry.getValue().stream().mapToLong(Long::longValue).toArray();
                events += work.run(c, shard, id, entry.getKey(), ofPartition);
            }
            return events;
        });
    }

    private long change(String action, Work<Long> work) {
        long sum = 0;
        for (Shard shard : shards.all()) {
            sum += changeOn(action, shard, work).orElse(0L);
        }
        return sum;
    }

    /** Changes the consumer on one shard, and signals its members once that is committed. */
    private Optional<Long> changeOn(String action, Shard shard, Work<Long> work) {
        int[] changed = {-1};
        Optional<Long> result = call(action, shard, (c, s, id) -> {
            changed[0] = id;
            return work.run(c, s, id);
        });
        if (result.isPresent()) {
            wakeUp.consumerChanged(shard, changed[0]);
        }
        return result;
    }

    /** Runs the statements in a transaction; returns nothing if the shard does not know the consumer. */
    private <T> Optional<T> call(String action, Shard shard, Work<T> work) {
        try {
            OptionalInt streamId = shard.readStreamId(stream);
            if (streamId.isEmpty()) {
                return Optional.empty();
            }
            return shard.require().transaction(connection -> {
                OptionalInt id = shard.tables().consumers().id(connection, streamId.getAsInt(), consumer);
                return id.isEmpty() ? Optional.empty() : Optional.of(work.run(connection, shard, id.getAsInt()));
            });
        } catch (SQLException e) {
            throw new EventSqlException(
                    "Could not " + action + " consumer " + consumer + " of stream " + stream.name() + " on " + shard
                            + ": " + e.getMessage(),
                    e);
        }
    }

    private static void requireGiven(String field, @Nullable Object value) {
        if (value == null) {
            throw new InvalidInputException(field, "must not be null");
        }
    }

    private void requireOwn(EventPosition position) {
        requireGiven("position", position);
        if (!stream.name().equals(position.stream())) {
            throw new InvalidInputException(
                    "position.stream", "must be " + stream.name() + ", but is " + position.stream());
        }
        requireIndex("position.shard", position.shard(), shards.size());
        requireIndex("position.partition", position.partition(), countPartitions(position));
        if (position.offset() < 0) {
            throw new InvalidInputException("position.offset", "must not be negative, but is " + position.offset());
        }
    }

    private int countPartitions(EventPosition position) {
        if (position.partition() < stream.partitions()) {
            return stream.partitions();
        }
        Shard shard = shards.get(position.shard());
        try {
            return shard.countPartitions(stream); // it may have grown
        } catch (SQLException e) {
            throw new EventSqlException(
                    "Could not read the partitions of stream " + stream.name() + " on " + shard + ": " + e.getMessage(),
                    e);
        }
    }

    private static void requireIndex(String field, int value, int size) {
        if (value < 0 || value >= size) {
            throw new InvalidInputException(field, "must be between 0 and " + (size - 1) + ", but is " + value);
        }
    }
}
