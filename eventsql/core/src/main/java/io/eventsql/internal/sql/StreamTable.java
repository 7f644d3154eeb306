package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/** {@code stream} and {@code stream_partition}: the registry of streams, and the row each append locks. */
public final class StreamTable {
    private static final UUID NO_PRODUCER = new UUID(0, 0);

    private final SqlSchema schema;

    public StreamTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * A stream as one shard knows it.
     *
     * @param id its number on that shard
     * @param spec what it is made of
     */
    public record Row(int id, StreamSpec spec) {}

    /** Index: stream_name_unique. */
    public Optional<Row> find(Connection connection, String name) {
        return Jooq.using(connection)
                .fetchOptional(
                        schema.sql("SELECT stream_id, name, partitions, segment_size, json FROM eventsql.stream"
                                + " WHERE name = ?"),
                        name)
                .map(StreamTable::row);
    }

    public List<Row> all(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql("SELECT stream_id, name, partitions, segment_size, json FROM eventsql.stream"
                        + " ORDER BY name"))
                .map(StreamTable::row);
    }

    /**
     * Inserts the stream with its partitions, in the caller's transaction.
     *
     * @return its id; empty if another transaction inserted it first
     */
    public Optional<Integer> insert(Connection connection, StreamSpec spec, int mapVersion) {
        var dsl = Jooq.using(connection);
        Optional<Integer> id = dsl.fetchOptional(
                        schema.sql("INSERT INTO eventsql.stream (name, partitions, segment_size, json)"
                                + " VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING stream_id"),
                        spec.name(),
                        spec.partitions(),
                        spec.segmentSize(),
                        spec.json())
                .map(r -> r.get(0, Integer.class));
        id.ifPresent(streamId -> {
            dsl.execute(
                    schema.sql("INSERT INTO eventsql.stream_partition (stream_id, partition, map_version)"
                            + " SELECT ?, p, ? FROM generate_series(0, ? - 1) AS p"),
                    streamId,
                    mapVersion,
                    spec.partitions());
            // The head of an empty partition.
            dsl.execute(
                    schema.sql("INSERT INTO eventsql.producer_batch (stream_id, partition, next_offset, base_offset,"
                            + " producer_id, batch_number, published_at)"
                            + " SELECT ?, p, 0, 0, ?, 0, clock_timestamp() FROM generate_series(0, ? - 1) AS p"),
                    streamId,
                    NO_PRODUCER,
                    spec.partitions());
        });
        return id;
    }

    private static Row row(org.jooq.Record r) {
        return new Row(
                r.get("stream_id", Integer.class),
                new StreamSpec(
                        r.get("name", String.class),
                        r.get("partitions", Integer.class),
                        r.get("segment_size", Long.class),
                        r.get("json", Boolean.class)));
    }

    /** Whether an error was caused by this table's unique name, i.e. a stream created at the same moment. */
    static boolean isDuplicate(SQLException e) {
        return "23505".equals(SqlErrors.state(e));
    }
}
