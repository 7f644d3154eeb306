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
import io.eventsql.internal.sql.ParkedEventTable.Row;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Inspects and controls a consumer: each change but a seek is one transaction on each shard, and a signal after it. Thread-safe.
 */
final class Control implements ConsumerControl {
    /** The parked events go with the consumer; a million of them takes seconds. */
    private static final Duration DELETE_TIME_MAX = Duration.ofMinutes(5);

    private final Shards shards;
    private final StreamSpec stream;
    private final String consumer;
    private final ConsumerTransactions transactions;
    private final ConsumerSeek seek;

    Control(Shards shards, StreamSpec stream, String consumer, WakeUp wakeUp) {
        this.shards = shards;
        this.stream = stream;
        this.consumer = consumer;
        this.transactions = new ConsumerTransactions(stream, consumer, wakeUp);
        this.seek = new ConsumerSeek(shards, stream, consumer, transactions);
    }

    @Override
    public List<PartitionState> state() {
        requireAllShards("read the state of");
        List<PartitionState> states = new ArrayList<>();
        for (Shard shard : shards.all()) {
            transactions
                    .call(
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
        requireAllShards("move");
        requireKnown(seek.toPosition(position));
    }

    @Override
    public void seek(EventPosition position) {
        requireOwn(position);
        requireAllShards("move");
        requireKnown(seek.toOffset(shards.get(position.shard()), position.partition(), position.offset()));
    }

    private void requireAllShards(String action) {
        shards.requireAllGiven("Could not " + action + " consumer " + consumer + " of stream " + stream.name());
    }

    private void requireKnown(boolean known) {
        if (!known) {
            throw new EventSqlException("There is no consumer " + consumer + " of stream " + stream.name());
        }
    }

    @Override
    public List<ParkedEvent> parkedEvents(int max) {
        requireMax(max);
        requireAllShards("read the parked events of");
        List<ParkedEvent> events = new ArrayList<>();
        for (Shard shard : shards.all()) {
            if (events.size() < max) {
                transactions
                        .call(
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
        requireAllShards("delete");
        seek.holdReceivers();
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

    private long change(String action, ConsumerTransactions.Work<Long> work) {
        requireAllShards(action);
        long sum = 0;
        for (Shard shard : shards.all()) {
            sum += transactions.change(action, shard, work).orElse(0L);
        }
        return sum;
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
            return shard.streams().countPartitions(stream); // it may have grown
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
