package io.eventsql.internal.sql;

import io.eventsql.PartitionState;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** {@code consumer}: who reads a stream; and where a consumer begins. Off the hot path. */
public final class ConsumerTable {
    private final SqlSchema schema;

    public ConsumerTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** How far a consumer is in one partition. */
    public record Offset(int partition, long nextOffset, long epoch) {}

    /**
     * The consumer's id; created with an offset and a free lease for each partition if there is none, in the caller's
     * transaction. Locks the consumer's row, so that of two who create it one does; it never waits for heartbeats.
     */
    public int register(Connection connection, int streamId, String stream, String name, StartPosition start) {
        var dsl = Database.dsl(connection);
        dsl.execute(
                schema.sql("INSERT INTO eventsql.consumer (stream_id, name) VALUES (?, ?)"
                        + " ON CONFLICT ON CONSTRAINT consumer_name_unique DO NOTHING"),
                streamId,
                name);
        int id = Objects.requireNonNull(dsl.fetchSingle(
                        schema.sql("SELECT consumer_id FROM eventsql.consumer WHERE stream_id = ? AND name = ?"
                                + " FOR NO KEY UPDATE"),
                        streamId,
                        name)
                .get(0, Integer.class));
        List<Integer> partitions = dsl.fetch(
                        schema.sql("INSERT INTO eventsql.consumer_partition (consumer_id, partition)"
                                + " SELECT ?, p.partition FROM eventsql.stream_partition p WHERE p.stream_id = ?"
                                + " AND NOT EXISTS (SELECT FROM eventsql.consumer_partition c"
                                + " WHERE c.consumer_id = ? AND c.partition = p.partition)"
                                + " ORDER BY p.partition RETURNING partition"),
                        id,
                        streamId,
                        id)
                .getValues(0, Integer.class);
        for (int partition : partitions) {
            dsl.execute(
                    schema.sql("INSERT INTO eventsql.consumer_offset"
                            + " (consumer_id, partition, commit_number, next_offset, epoch, consumed_events,"
                            + " committed_at) VALUES (?, ?, 0, ?, 0, 0, clock_timestamp())"),
                    id,
                    partition,
                    offset(connection, stream, partition, start));
        }
        return id;
    }

    /** The offset of a place in one partition. */
    public long offset(Connection connection, String stream, int partition, StartPosition position) {
        if (position.offset() >= 0) {
            return position.offset();
        }
        var dsl = Database.dsl(connection);
        if (position.time() != null) {
            return (Long) Objects.requireNonNull(dsl.fetchValue(
                    schema.sql("SELECT eventsql.offset_at_v1(?, ?, ?)"),
                    stream,
                    partition,
                    Timestamp.from(position.time())));
        }
        return (Long) Objects.requireNonNull(dsl.fetchValue(
                schema.sql("SELECT CASE WHEN ? THEN next_offset ELSE log_start END"
                        + " FROM eventsql.partition_head WHERE stream = ? AND partition = ?"),
                position.equals(StartPosition.LATEST),
                stream,
                partition));
    }

    /** The consumer's id; empty if it is not known. */
    public OptionalInt id(Connection connection, int streamId, String name) {
        return Database.dsl(connection)
                .fetchOptional(
                        schema.sql("SELECT consumer_id FROM eventsql.consumer WHERE stream_id = ? AND name = ?"),
                        streamId,
                        name)
                .map(r -> OptionalInt.of(r.get(0, Integer.class)))
                .orElse(OptionalInt.empty());
    }

    /** How far the consumer is, by partition. */
    public List<Offset> offsets(Connection connection, int consumerId) {
        return Database.dsl(connection)
                .fetch(
                        schema.sql("SELECT partition, next_offset, epoch FROM eventsql.consumer_offsets_v1(?)"),
                        consumerId)
                .map(r -> new Offset(r.get(0, Integer.class), r.get(1, Long.class), r.get(2, Long.class)));
    }

    /** How the consumer is on this shard, by partition. */
    public List<PartitionState> states(Connection connection, int shard, int consumerId, StreamSpec stream) {
        return Database.dsl(connection)
                .fetch(
                        schema.sql("SELECT * FROM eventsql.consumer_state_v1(?, ?, ?, ?)"),
                        consumerId,
                        stream.name(),
                        stream.segmentSize(),
                        PartitionState.PARKED_EVENTS_COUNTED_MAX)
                .map(r -> new PartitionState(
                        shard,
                        r.get(0, Integer.class),
                        PartitionState.Status.valueOf(r.get(1, String.class).toUpperCase(Locale.ROOT)),
                        r.get(2, String.class),
                        r.get(3, Long.class),
                        r.get(4, Long.class),
                        r.get(5, Long.class),
                        Duration.ofMillis(r.get(6, Long.class)),
                        r.get(7, OffsetDateTime.class).toInstant(),
                        r.get(8, Long.class),
                        r.get(9, String.class),
                        instantOrNull(r.get(10, OffsetDateTime.class)),
                        r.get(11, Integer.class),
                        r.get(12, Integer.class)));
    }

    private static @Nullable Instant instantOrNull(@Nullable OffsetDateTime time) {
        return time == null ? null : time.toInstant();
    }

    /** Deletes the consumer and all that is stored for it. */
    public void delete(Connection connection, int consumerId) {
        var dsl = Database.dsl(connection);
        dsl.execute(schema.sql("DELETE FROM eventsql.consumer WHERE consumer_id = ?"), consumerId);
        dsl.execute(schema.sql("DELETE FROM eventsql.consumer_offset WHERE consumer_id = ?"), consumerId);
    }
}
