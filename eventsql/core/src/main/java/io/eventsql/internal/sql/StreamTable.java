package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/**
 * {@code stream} and {@code stream_partition}: the streams of a shard, and the row of each partition that appends lock.
 */
public final class StreamTable {
    private static final UUID NO_PRODUCER = new UUID(0, 0);

    // Index: stream_name_unique. Takes no row lock.
    private static final String FIND = """
            SELECT stream_id, name, partitions, segment_size, json
            FROM eventsql.stream
            WHERE name = ?""";

    // Index: stream_name_unique, or a scan of the whole table. Takes no row lock.
    private static final String FIND_ALL = """
            SELECT stream_id, name, partitions, segment_size, json
            FROM eventsql.stream
            ORDER BY name""";

    // Index: stream_name_unique, on which a concurrent insert of the same name waits.
    private static final String INSERT = """
            INSERT INTO eventsql.stream (name, partitions, segment_size, json)
            VALUES (?, ?, ?, ?)
            ON CONFLICT (name) DO NOTHING
            RETURNING stream_id""";

    // New rows of a stream that is not committed yet: conflicts with nothing.
    private static final String INSERT_PARTITIONS = """
            INSERT INTO eventsql.stream_partition (stream_id, partition, map_version)
            SELECT ?, p, ?
            FROM generate_series(0, ? - 1) AS p""";

    // The heads of the empty partitions. Conflicts with nothing.
    private static final String INSERT_HEADS = """
            INSERT INTO eventsql.producer_batch
                (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
            SELECT ?, p, 0, 0, ?, 0, clock_timestamp()
            FROM generate_series(0, ? - 1) AS p""";

    private final SqlSchema schema;

    public StreamTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * A stream as stored on one shard.
     *
     * @param id its id on that shard
     */
    public record Row(int id, StreamSpec spec) {}

    /** Returns the stream of that name. */
    public Optional<Row> find(Connection connection, String name) {
        return Jooq.using(connection).fetchOptional(schema.sql(FIND), name).map(StreamTable::row);
    }

    /** Returns all streams, by name. */
    public List<Row> findAll(Connection connection) {
        return Jooq.using(connection).fetch(schema.sql(FIND_ALL)).map(StreamTable::row);
    }

    /**
     * Inserts the stream with its partitions, in the caller's transaction.
     *
     * @return its id; empty if another transaction inserted it first
     */
    public Optional<Integer> insert(Connection connection, StreamSpec spec, int mapVersion) {
        var dsl = Jooq.using(connection);
        Optional<Integer> id = dsl.fetchOptional(
                        schema.sql(INSERT), spec.name(), spec.partitions(), spec.segmentSize(), spec.json())
                .map(r -> r.get(0, Integer.class));
        id.ifPresent(streamId -> {
            dsl.execute(schema.sql(INSERT_PARTITIONS), streamId, mapVersion, spec.partitions());
            dsl.execute(schema.sql(INSERT_HEADS), streamId, NO_PRODUCER, spec.partitions());
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
}
