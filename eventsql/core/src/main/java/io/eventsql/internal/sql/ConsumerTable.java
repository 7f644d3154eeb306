package io.eventsql.internal.sql;

import io.eventsql.StartPosition;
import java.sql.Connection;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** {@code consumer}: the consumers of a stream, and where they start. Off the hot path. */
public final class ConsumerTable {
    // Index: consumer_name_unique, on which a concurrent insert of the same name waits.
    private static final String INSERT = """
            INSERT INTO eventsql.consumer (stream_id, name)
            VALUES (?, ?)
            ON CONFLICT ON CONSTRAINT consumer_name_unique DO NOTHING""";

    // Index: consumer_name_unique. Locks the row, but not against foreign keys, which heartbeats check.
    private static final String LOCK = """
            SELECT consumer_id
            FROM eventsql.consumer
            WHERE stream_id = ? AND name = ?
            FOR NO KEY UPDATE""";

    // Index: consumer_name_unique. Takes no row lock.
    private static final String FIND_ID = """
            SELECT consumer_id
            FROM eventsql.consumer
            WHERE stream_id = ? AND name = ?""";

    // Indexes: the primary keys of stream_partition and consumer_partition. The lock of the consumer's row excludes
    // others.
    private static final String INSERT_MISSING_PARTITIONS = """
            INSERT INTO eventsql.consumer_partition (consumer_id, partition)
            SELECT ?, p.partition
            FROM eventsql.stream_partition p
            WHERE p.stream_id = ? AND NOT EXISTS (
                SELECT FROM eventsql.consumer_partition c
                WHERE c.consumer_id = ? AND c.partition = p.partition)
            ORDER BY p.partition
            RETURNING partition""";

    // The first row of a partition: conflicts with nothing.
    private static final String INSERT_OFFSET = """
            INSERT INTO eventsql.consumer_offset
                (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
            VALUES (?, ?, 0, ?, 0, 0, clock_timestamp())""";

    // Index: consumer_name_unique. Takes no row lock.
    private static final String AGE = """
            SELECT ceil(extract(epoch FROM clock_timestamp() - created_at) * 1000)::bigint
            FROM eventsql.consumer
            WHERE stream_id = ? AND name = ?""";

    // Indexes: stream_name_unique, and producer_batch_head for the head. Takes no row lock.
    private static final String FIND_BOUND = """
            SELECT CASE WHEN ? THEN next_offset ELSE log_start END
            FROM eventsql.partition_head
            WHERE stream = ? AND partition = ?""";

    // Indexes: the primary key of consumer_partition, stream_name_unique, and producer_batch_head for the heads. Takes
    // no row lock.
    private static final String FIND_BOUNDS = """
            SELECT p.partition, CASE WHEN ? THEN h.next_offset ELSE h.log_start END
            FROM eventsql.consumer_partition p
            JOIN eventsql.partition_head h ON h.stream = ? AND h.partition = p.partition
            WHERE p.consumer_id = ?""";

    // Index: the primary key of consumer_partition, and those of offset_at_v1. Takes no row lock.
    private static final String FIND_OFFSETS_AT = """
            SELECT p.partition, eventsql.offset_at_v1(?, p.partition, ?)
            FROM eventsql.consumer_partition p
            WHERE p.consumer_id = ?""";

    // Indexes: the primary key of consumer_partition, and consumer_offset_newest, of which it reads the last entries.
    // Takes no row lock.
    private static final String FIND_STOPPED = """
            SELECT p.partition, o.next_offset, p.error
            FROM eventsql.consumer_partition p
            CROSS JOIN LATERAL (
                SELECT n.next_offset FROM eventsql.consumer_offset n
                WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
                ORDER BY n.commit_number DESC LIMIT 1) o
            WHERE p.consumer_id = ? AND p.state = 'stopped'
            ORDER BY p.partition""";

    // Index: consumer_name_unique. Takes no row lock.
    private static final String IDS = "SELECT consumer_id FROM eventsql.consumer WHERE stream_id = ?";

    // Index: the primary key. Takes no row lock.
    private static final String PARTITIONS =
            "SELECT partition FROM eventsql.consumer_partition WHERE consumer_id = ? ORDER BY partition";

    private final SqlSchema schema;

    public ConsumerTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** The offset of a consumer in one partition, and the partition's epoch. */
    public record Offset(int partition, long nextOffset, long epoch) {}

    /** A partition that a failure has stopped. */
    public record StoppedPartition(int partition, long nextOffset, String error) {}

    /**
     * Returns the consumer's id. Creates the consumer if there is none, with an offset and a free lease for each
     * partition, in the caller's transaction. The lock on the consumer's row lets only one of two concurrent calls
     * create it, and never waits for heartbeats.
     */
    public int register(Connection connection, int streamId, String stream, String name, StartPosition start) {
        var dsl = Jooq.using(connection);
        dsl.execute(schema.sql(INSERT), streamId, name);
        int id = Objects.requireNonNull(
                dsl.fetchSingle(schema.sql(LOCK), streamId, name).get(0, Integer.class));
        List<Integer> partitions = dsl.fetch(schema.sql(INSERT_MISSING_PARTITIONS), id, streamId, id)
                .getValues(0, Integer.class);
        for (int partition : partitions) {
            dsl.execute(schema.sql(INSERT_OFFSET), id, partition, offset(connection, stream, partition, start));
        }
        return id;
    }

    /** Returns the ids of all consumers of a stream. */
    public List<Integer> ids(Connection connection, int streamId) {
        return Jooq.using(connection).fetch(schema.sql(IDS), streamId).map(r -> r.get(0, Integer.class));
    }

    /** Returns the partitions of the consumer on this shard. */
    public List<Integer> partitions(Connection connection, int consumerId) {
        return Jooq.using(connection).fetch(schema.sql(PARTITIONS), consumerId).map(r -> r.get(0, Integer.class));
    }

    /** Returns the current time by the database's clock. */
    public Instant readClock(Connection connection) {
        return Jooq.using(connection)
                .fetchSingle("SELECT clock_timestamp()")
                .get(0, OffsetDateTime.class)
                .toInstant();
    }

    /** Returns the time since a consumer was registered on this shard; empty if it is not. */
    public Optional<Duration> age(Connection connection, int streamId, String name) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(AGE), streamId, name)
                .map(row -> Duration.ofMillis(row.get(0, Long.class)));
    }

    /** Returns the offset of a position in one partition. */
    public long offset(Connection connection, String stream, int partition, StartPosition position) {
        if (position.offset() >= 0) {
            return position.offset();
        }
        var dsl = Jooq.using(connection);
        if (position.time() != null) {
            return (Long) Objects.requireNonNull(dsl.fetchValue(
                    schema.sql("SELECT eventsql.offset_at_v1(?, ?, ?)"),
                    stream,
                    partition,
                    Timestamp.from(position.time())));
        }
        return (Long) Objects.requireNonNull(
                dsl.fetchValue(schema.sql(FIND_BOUND), position.equals(StartPosition.LATEST), stream, partition));
    }

    /** Returns the offset of a position in each partition of a consumer. */
    public Map<Integer, Long> offsets(Connection connection, int consumerId, String stream, StartPosition position) {
        if (position.offset() >= 0) {
            return partitions(connection, consumerId).stream()
                    .collect(Collectors.toMap(partition -> partition, partition -> position.offset()));
        }
        var dsl = Jooq.using(connection);
        var rows = position.time() != null
                ? dsl.fetch(schema.sql(FIND_OFFSETS_AT), stream, Timestamp.from(position.time()), consumerId)
                : dsl.fetch(schema.sql(FIND_BOUNDS), position.equals(StartPosition.LATEST), stream, consumerId);
        return rows.intoMap(r -> r.get(0, Integer.class), r -> r.get(1, Long.class));
    }

    /** Returns the consumer's id; empty if it does not exist. */
    public OptionalInt id(Connection connection, int streamId, String name) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(FIND_ID), streamId, name)
                .map(r -> OptionalInt.of(r.get(0, Integer.class)))
                .orElse(OptionalInt.empty());
    }

    /**
     * Returns the offset of the consumer in each partition.
     *
     * @param incarnation that of the database when the consumer's id was read; {@code null}: not compared
     */
    public List<Offset> offsets(Connection connection, @Nullable String incarnation, int consumerId) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT partition, next_offset, epoch FROM eventsql.consumer_offsets_v1(?, ?)"),
                        incarnation,
                        consumerId)
                .map(r -> new Offset(r.get(0, Integer.class), r.get(1, Long.class), r.get(2, Long.class)));
    }

    /** Returns the partitions of the consumer that a failure has stopped. */
    public List<StoppedPartition> stopped(Connection connection, int consumerId) {
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_STOPPED), consumerId)
                .map(r -> new StoppedPartition(
                        r.get(0, Integer.class), r.get(1, Long.class), String.valueOf(r.get(2, String.class))));
    }

    /** Deletes the consumer and everything stored for it. */
    public void delete(Connection connection, int consumerId) {
        var dsl = Jooq.using(connection);
        dsl.execute(schema.sql("DELETE FROM eventsql.consumer WHERE consumer_id = ?"), consumerId);
        dsl.execute(schema.sql("DELETE FROM eventsql.consumer_offset WHERE consumer_id = ?"), consumerId);
    }
}
