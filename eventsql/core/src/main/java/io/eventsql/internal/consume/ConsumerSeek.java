package io.eventsql.internal.consume;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.Tables;
import io.eventsql.internal.sql.ConsumerTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves a consumer. A seek frees the partitions that it moves and raises their epochs, so that commits of their former owners are
 * refused. Where keys have moved between shards, it keeps the order of keys: what the shards tell each other, and in which order, is
 * in docs/protocols.md. Thread-safe.
 */
final class ConsumerSeek {
    private static final Logger LOG = LoggerFactory.getLogger(ConsumerSeek.class);
    private static final int ATTEMPTS_MAX = 40;
    private static final long NOT_COUNTED = -1;
    private static final int BEFORE_ALL_VERSIONS = -1;

    private final Shards shards;
    private final StreamSpec stream;
    private final String consumer;
    private final ConsumerTransactions transactions;

    ConsumerSeek(Shards shards, StreamSpec stream, String consumer, ConsumerTransactions transactions) {
        this.shards = shards;
        this.stream = stream;
        this.consumer = consumer;
        this.transactions = transactions;
    }

    /** Moves the consumer in all partitions; returns whether it exists. */
    boolean toPosition(StartPosition position) {
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
        return known;
    }

    /** Returns for each shard the lowest version of the consumer's partitions above this one, if there is one. */
    private Map<Shard, Integer> nextVersions(int version) {
        Map<Shard, Integer> next = new LinkedHashMap<>();
        for (Shard shard : shards.all()) {
            transactions
                    .call(
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

    /** Moves the consumer in one partition; returns whether it exists. */
    boolean toOffset(Shard shard, int partition, long offset) {
        return seekOn(shard, BEFORE_ALL_VERSIONS, (c, s, id) -> {
                    requireExisting(c, s, partition, offset);
                    return (long) s.tables().leases().seek(c, id, Map.of(partition, offset));
                })
                .isPresent();
    }

    /** Holds the consumer back wherever keys have moved to, until it has handled again what came before on other shards. */
    void holdReceivers() {
        if (shards.haveMoved()) {
            Map<Shard, Long> seeks = readSeeks(shards.all());
            seeks.keySet().forEach(receiver -> hold(receiver, seeks, BEFORE_ALL_VERSIONS));
        }
    }

    /** Rejects the offset before any partition is moved. One that retention removes afterwards is out of range. */
    private void requireExisting(long offset) {
        for (Shard shard : shards.all()) {
            transactions.call("read the positions of", shard, (c, s, id) -> {
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

    /**
     * Moves the consumer on a shard. Where keys have moved to other shards, these record it before: they hold the keys back until the
     * consumer has handled the former events again. If the process dies in between, nothing has moved, and the members release the
     * others after a while.
     *
     * @param version the lowest one of the partitions that it moves: only those of higher ones wait for them
     */
    private Optional<Long> seekOn(Shard shard, int version, ConsumerTransactions.Work<Long> seek) {
        for (int attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
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
            Optional<Long> moved = transactions.change(
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
                transactions.change(
                        "move",
                        each.getKey(),
                        (c, s, id) ->
                                s.tables().shardBarriers().countSeek(c, id, each.getValue(), mapVersion) ? 1L : 0L);
            } catch (RuntimeException e) { // the consumer has been moved; data sources have exceptions of their own
                LOG.debug("Consumer {} of stream {} waits until members count it", consumer, stream.name(), e);
            }
        }
    }

    /** Returns how often the consumer was moved on each shard that knows it. */
    private Map<Shard, Long> readSeeks(List<Shard> of) {
        Map<Shard, Long> seeks = new LinkedHashMap<>();
        for (Shard each : of) {
            transactions
                    .call("move", each, (c, s, id) -> s.tables().shardBarriers().seeks(c, id, s.number()))
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
        transactions.change("hold", receiver, (c, s, id) -> {
            s.tables().shardBarriers().holdReceivers(c, id, next.keySet(), next.values(), version);
            return 0L;
        });
    }
}
