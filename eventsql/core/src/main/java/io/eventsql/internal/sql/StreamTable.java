package io.eventsql.internal.sql;

import static org.jooq.impl.DSL.field;

import io.eventsql.Compaction;
import io.eventsql.KeyTracking;
import io.eventsql.Retention;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.jooq.Field;
import org.jspecify.annotations.Nullable;

/**
 * {@code stream} and {@code stream_partition}: the streams of a shard, and the row of each partition that appends lock.
 */
public final class StreamTable {
    // Indexes: stream_name_unique, the primary keys of stream_partition, stream_map and stream_placement; shard has one
    // row. Takes no
    // row lock. In one snapshot, so that a map is never known without the slots that the shard had then.
    private static final String FIND = """
            SELECT s.stream_id, name, s.partitions, segment_size, json, retention_bytes, retention_events, expire_handled,
                   compaction, (extract(epoch FROM tombstone_delay) * 1000)::bigint AS tombstone_delay_ms,
                   (extract(epoch FROM retention) * 1000)::bigint AS age_ms,
                   (extract(epoch FROM abandoned_after) * 1000)::bigint AS abandoned_after_ms, storage, key_tracking,
                   p.map_version AS first_version,
                   m.map_version, m.partitions AS map_partitions, m.slots, m.moved, m.is_placement,
                   h.map_version AS cluster_version, h.slot_map, h.former_slot_map,
                   k.map_version AS kept_version, k.slot_map AS kept_slot_map,
                   h.shard_number = ANY (h.spare_shards) AS on_spare_shard
            FROM eventsql.stream s
            JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = 0
            LEFT JOIN eventsql.shard h ON true
            LEFT JOIN eventsql.stationary_stream k ON k.stream = s.name
            LEFT JOIN LATERAL (
                SELECT g.map_version, g.partitions, g.slots, g.moved, g.is_placement FROM (
                    SELECT l.map_version, l.partitions, l.slots, l.moved, true AS is_placement
                    FROM eventsql.stream_placement l
                    WHERE l.stream_id = s.stream_id
                    UNION ALL
                    SELECT o.map_version, o.partitions, o.slots, NULL, false FROM eventsql.stream_map o
                    WHERE o.stream_id = s.stream_id AND o.map_version < 2147483647) g
                ORDER BY g.map_version DESC LIMIT 1) m ON true
            WHERE name = ?""";

    // Index: stream_name_unique, or a scan of the whole table. Takes no row lock.
    private static final String FIND_ALL = """
            SELECT s.stream_id, name, s.partitions, segment_size, json, retention_bytes, retention_events, expire_handled,
                   compaction, (extract(epoch FROM tombstone_delay) * 1000)::bigint AS tombstone_delay_ms,
                   (extract(epoch FROM retention) * 1000)::bigint AS age_ms,
                   (extract(epoch FROM abandoned_after) * 1000)::bigint AS abandoned_after_ms, storage, key_tracking,
                   p.map_version AS first_version
            FROM eventsql.stream s
            JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = 0
            ORDER BY name""";

    // The columns of FIND_ALL, in its order. Unless they are declared, jOOQ asks the driver for those of each result,
    // and
    // the driver the server, once.
    private static final List<Field<?>> SPEC_FIELDS = List.of(
            field("stream_id", Integer.class),
            field("name", String.class),
            field("partitions", Integer.class),
            field("segment_size", Long.class),
            field("json", Boolean.class),
            field("retention_bytes", Long.class),
            field("retention_events", Long.class),
            field("expire_handled", Boolean.class),
            field("compaction", Boolean.class),
            field("tombstone_delay_ms", Long.class),
            field("age_ms", Long.class),
            field("abandoned_after_ms", Long.class),
            field("storage", String.class),
            field("key_tracking", String.class),
            field("first_version", Integer.class));

    // The columns that FIND has after these.
    private static final List<Field<?>> MAP_FIELDS = List.of(
            field("map_version", Integer.class),
            field("map_partitions", Integer.class),
            field("slots", Short[].class),
            field("moved", Short[].class),
            field("is_placement", Boolean.class),
            field("cluster_version", Integer.class),
            field("slot_map", Short[].class),
            field("former_slot_map", Short[].class),
            field("kept_version", Integer.class),
            field("kept_slot_map", Short[].class),
            field("on_spare_shard", Boolean.class));

    private static final List<Field<?>> FIELDS =
            Stream.concat(SPEC_FIELDS.stream(), MAP_FIELDS.stream()).toList();

    // Index: stream_name_unique, on which a concurrent insert of the same name waits.
    private static final String CREATE = """
            SELECT eventsql.create_keyed_stream_v1(?, ?, ?, ?, ?,
                ?::bigint * interval '1 ms', ?::bigint, ?::bigint, ?, ?::bigint * interval '1 ms',
                ?, ?::bigint * interval '1 ms', ?, ?)""";

    // Index: stream_name_unique. Locks the stream's row, and that of retention, whose current step it waits for.
    private static final String ALTER = """
            SELECT eventsql.alter_stream_v1(?, ?, ?,
                ?::bigint * interval '1 ms', ?::bigint, ?::bigint, ?, ?::bigint * interval '1 ms',
                ?, ?::bigint * interval '1 ms')""";

    // Indexes: stream_name_unique, the primary key of stream_partition. Reads the catalog: pg_class_relname_nsp_index.
    // Takes no row
    // lock.
    private static final String HAS_ALL_PARTITIONS = """
            SELECT NOT EXISTS (
                SELECT FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
                WHERE s.name = ?
                  AND to_regclass('eventsql.' || quote_ident(s.table_name || '__p' || p.partition)) IS NULL)""";

    // Locks the stream's table in SHARE UPDATE EXCLUSIVE mode. Takes an advisory lock for the stream.
    private static final String CREATE_PARTITIONS = "SELECT eventsql.create_partitions_v1(?, ?)";

    private final SqlSchema schema;

    public StreamTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * A stream as stored on one shard.
     *
     * @param id its id on that shard
     * @param firstVersion the version of the map that it has until it grows; negative: it accepts no events
     * @param map where the events of keys belong on that shard; {@code null}: the stream has not grown there, nor have keys moved;
     *     or not read
     * @param slots the slots that the shard had when the row was read; {@code null}: not read
     * @param kept the slot map by which the keys of a stationary stream belong to shards; {@code null}: it is none, or not read
     * @param isOnSpareShard whether the shard has had no slots yet: so it may not know that the stream stays on others
     */
    public record Row(
            int id,
            StreamSpec spec,
            int firstVersion,
            @Nullable StoredMap map,
            @Nullable StoredSlots slots,
            @Nullable StoredSlots kept,
            boolean isOnSpareShard) {
        /** Returns whether the keys of the stream stay somewhere, and this shard may not know where. */
        public boolean isPlacedElsewhere() {
            return isOnSpareShard && (spec.compaction() != null || spec.keyTracking() != KeyTracking.OFF);
        }
    }

    /**
     * The slot map of a shard: see {@link ShardIdentity}.
     *
     * @param former {@code null}: all shards have this map
     */
    @SuppressWarnings("ArrayRecordComponent") // comes from the driver as it is
    public record StoredSlots(int version, Short[] slotMap, Short @Nullable [] former) {}

    /**
     * The map of a stream that has grown on a shard.
     *
     * @param partitions the number of partitions that the map uses
     * @param slots the partition of each slot; {@code null}: {@code hash % partitions}
     * @param moved the partition of each key slot, -1: as {@code slots} says; {@code null}: as {@code slots} says
     * @param isPlacement whether keys have moved to or from the shard since the stream exists
     */
    @SuppressWarnings("ArrayRecordComponent") // comes from the driver as it is
    public record StoredMap(
            int version, int partitions, Short @Nullable [] slots, Short @Nullable [] moved, boolean isPlacement) {}

    /** Returns the stream of that name. */
    public Optional<Row> find(Connection connection, String name) {
        return Jooq.using(connection)
                .resultQuery(schema.sql(FIND), name)
                .coerce(FIELDS)
                .fetchOptional()
                .map(StreamTable::row);
    }

    /** Returns all streams, by name. */
    public List<Row> findAll(Connection connection) {
        return Jooq.using(connection)
                .resultQuery(schema.sql(FIND_ALL))
                .coerce(SPEC_FIELDS)
                .fetch(StreamTable::row);
    }

    /**
     * Creates a stream with its table, unless a stream of that name exists, in the caller's transaction. The tables of
     * its partitions follow: {@link #createPartitions}.
     */
    public void create(Connection connection, StreamSpec spec, int mapVersion) {
        Retention retention = spec.retention();
        Jooq.using(connection)
                .fetch(
                        schema.sql(CREATE),
                        spec.name(),
                        spec.partitions(),
                        spec.segmentSize(),
                        spec.json(),
                        mapVersion,
                        millis(retention.maxAge()),
                        retention.maxBytes(),
                        retention.maxEvents(),
                        retention.expireHandled(),
                        millis(retention.abandonedAfter()),
                        spec.compaction() != null,
                        tombstoneDelayMs(spec),
                        spec.storage().name().toLowerCase(Locale.ROOT),
                        spec.keyTracking().name().toLowerCase(Locale.ROOT));
    }

    /**
     * Returns the version of the shard's slot map, for a stream that is being created, and keeps the map as it is until the end of
     * the caller's transaction.
     */
    public int lockSlots(Connection connection) {
        return Objects.requireNonNull(
                (Integer) Jooq.using(connection).fetchValue(schema.sql("SELECT eventsql.slots_of_new_stream_v1()")));
    }

    /** Closes a stream that the caller's transaction has created, if the shard has no slots or is about to receive some. */
    public void closeNew(Connection connection, String stream) {
        Jooq.using(connection).fetch(schema.sql("SELECT eventsql.close_new_stream_v1(?)"), stream);
    }

    /**
     * Changes all that can be changed of a stream, in the caller's transaction.
     *
     * @return whether the stream exists
     */
    public boolean alter(Connection connection, StreamSpec spec) {
        Retention retention = spec.retention();
        return Boolean.TRUE.equals(Jooq.using(connection)
                .fetchValue(
                        schema.sql(ALTER),
                        spec.name(),
                        spec.segmentSize(),
                        spec.json(),
                        millis(retention.maxAge()),
                        retention.maxBytes(),
                        retention.maxEvents(),
                        retention.expireHandled(),
                        millis(retention.abandonedAfter()),
                        spec.compaction() != null,
                        tombstoneDelayMs(spec)));
    }

    private static long tombstoneDelayMs(StreamSpec spec) {
        return Objects.requireNonNullElse(spec.compaction(), Compaction.DEFAULT)
                .tombstoneDelay()
                .toMillis();
    }

    private static @Nullable Long millis(@Nullable Duration duration) {
        return duration == null ? null : duration.toMillis();
    }

    /** Returns whether all partitions of a stream have their tables. */
    public boolean hasAllPartitions(Connection connection, StreamSpec spec) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(HAS_ALL_PARTITIONS), spec.name()));
    }

    /**
     * Creates the tables of partitions that lack them, and of their first segments, in the caller's transaction, which
     * must be READ COMMITTED.
     *
     * @param max the number of partitions: each takes a dozen entries of the server's lock table until the commit
     * @return how many partitions still lack them
     */
    public int createPartitions(Connection connection, int streamId, int max) {
        return Objects.requireNonNull(
                (Integer) Jooq.using(connection).fetchValue(schema.sql(CREATE_PARTITIONS), streamId, max));
    }

    private static Row row(org.jooq.Record r) {
        return new Row(
                r.get("stream_id", Integer.class),
                new StreamSpec(
                        r.get("name", String.class),
                        r.get("partitions", Integer.class),
                        r.get("segment_size", Long.class),
                        r.get("json", Boolean.class),
                        retention(r),
                        Boolean.TRUE.equals(r.get("compaction", Boolean.class))
                                ? new Compaction(Duration.ofMillis(r.get("tombstone_delay_ms", Long.class)))
                                : null,
                        storage(r.get("storage", String.class)),
                        keyTracking(r.get("key_tracking", String.class))),
                r.get("first_version", Integer.class),
                r.indexOf("map_version") < 0 ? null : map(r),
                r.indexOf("cluster_version") < 0 ? null : slots(r),
                r.indexOf("kept_version") < 0 ? null : kept(r),
                r.indexOf("on_spare_shard") >= 0 && Boolean.TRUE.equals(r.get("on_spare_shard", Boolean.class)));
    }

    private static @Nullable StoredSlots kept(org.jooq.Record r) {
        Integer version = r.get("kept_version", Integer.class);
        return version == null ? null : new StoredSlots(version, r.get("kept_slot_map", Short[].class), null);
    }

    private static @Nullable StoredSlots slots(org.jooq.Record r) {
        Integer version = r.get("cluster_version", Integer.class);
        return version == null
                ? null
                : new StoredSlots(version, r.get("slot_map", Short[].class), r.get("former_slot_map", Short[].class));
    }

    private static @Nullable StoredMap map(org.jooq.Record r) {
        Integer version = r.get("map_version", Integer.class);
        return version == null
                ? null
                : new StoredMap(
                        version,
                        r.get("map_partitions", Integer.class),
                        r.get("slots", Short[].class),
                        r.get("moved", Short[].class),
                        Boolean.TRUE.equals(r.get("is_placement", Boolean.class)));
    }

    /** Returns the storage that the column of that name means. */
    static Storage storage(String stored) {
        return Storage.valueOf(stored.toUpperCase(Locale.ROOT));
    }

    /** Returns the key tracking that the column of that name means. */
    static KeyTracking keyTracking(String stored) {
        return KeyTracking.valueOf(stored.toUpperCase(Locale.ROOT));
    }

    private static Retention retention(org.jooq.Record r) {
        Long ageMs = r.get("age_ms", Long.class);
        return new Retention(
                ageMs == null ? null : Duration.ofMillis(ageMs),
                r.get("retention_bytes", Long.class),
                r.get("retention_events", Long.class),
                r.get("expire_handled", Boolean.class),
                Duration.ofMillis(r.get("abandoned_after_ms", Long.class)));
    }
}
