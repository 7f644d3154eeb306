package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** The statements of sinks. Immutable. */
final class SinkSql {
    private static final String WRITTEN_PREFIX = "eventsql.";
    /** A payload of NOTIFY is limited; more changes are sent as "anything may have changed". */
    private static final int CHANGES_MAX = 300;

    // Reads two tables of one row by sequential scans. A schema of the previous release lacks two of the columns.
    private static final String FIND_IDENTITY = """
            SELECT s.cluster_id, s.shard_number, s.shard_names, s.slot_map, s.map_version,
                (SELECT max(version) FROM eventsql.schema_version),
                jsonb_array_length(coalesce(to_jsonb(s) -> 'spare_shards', '[]'))
                    + jsonb_array_length(coalesce(to_jsonb(s) -> 'removed_shards', '[]'))
            FROM eventsql.shard s""";

    // Index: the primary key of incarnation. NULL if a restore is in progress, or is not recorded yet.
    private static final String FIND_INCARNATION = "SELECT eventsql.incarnation_v1()";

    // Index: stream_name_unique.
    private static final String FIND_STREAM = """
            SELECT stream_id
            FROM eventsql.stream
            WHERE name = ?""";

    // Indexes: stream_name_unique, the primary keys of stream_partition, stream_map and stationary_stream. Takes no
    // lock. The greatest version is none of a map. A closed map has a negative version, which no append may match:
    // batches get it without its sign, and are rejected until the map is open.
    private static final String FIND_MAP = """
            SELECT s.partitions, coalesce(m.map_version, abs(p.map_version)), m.partitions, m.slots, k.slot_map
            FROM eventsql.stream s
            JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = 0
            LEFT JOIN eventsql.stationary_stream k ON k.stream = s.name
            LEFT JOIN LATERAL (
                SELECT g.map_version, g.partitions, g.slots FROM eventsql.stream_map g
                WHERE g.stream_id = s.stream_id AND g.map_version < 2147483647
                ORDER BY g.map_version DESC LIMIT 1) m ON true
            WHERE s.name = ?""";

    // Indexes: stream_name_unique, the primary keys of stream_map and stationary_stream. Takes no lock.
    private static final String FIND_NEXT_MAP = """
            SELECT s.partitions, m.map_version, m.partitions, m.slots, k.slot_map
            FROM eventsql.stream s
            LEFT JOIN eventsql.stationary_stream k ON k.stream = s.name
            JOIN LATERAL (
                SELECT g.map_version, g.partitions, g.slots FROM eventsql.stream_map g
                WHERE g.stream_id = s.stream_id AND g.map_version > ? AND g.map_version < 2147483647
                ORDER BY g.map_version LIMIT 1) m ON true
            WHERE s.name = ?""";

    // Indexes: the primary keys of stream_partition and sink_producer, producer_batch_of_producer and
    // producer_batch_head. Locks
    // the partition's row of stream_partition until the commit is visible.
    private static final String APPEND = "SELECT eventsql.append_sink_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Index: the primary key of segment. Locks the parent in SHARE UPDATE EXCLUSIVE mode, and waits for that for 2 s at
    // most.
    private static final String ENSURE_SEGMENTS = """
            SELECT added
            FROM eventsql.ensure_segments_v1(?, ?, ?, ?)""";

    // Takes no lock before its commit. A notification need not be durable.
    private static final String NOTIFY =
            "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2000', true), pg_notify(?, ?)";

    private final String schema;
    private final String findIdentity;
    private final String findIncarnation;
    private final String findStream;
    private final String findMap;
    private final String findNextMap;
    private final String append;
    private final String ensureSegments;

    SinkSql(String schema) {
        this.schema = schema;
        findIdentity = inSchema(FIND_IDENTITY);
        findIncarnation = inSchema(FIND_INCARNATION);
        findStream = inSchema(FIND_STREAM);
        findMap = inSchema(FIND_MAP);
        findNextMap = inSchema(FIND_NEXT_MAP);
        append = inSchema(APPEND);
        ensureSegments = inSchema(ENSURE_SEGMENTS);
    }

    private String inSchema(String statement) {
        return statement.replace(WRITTEN_PREFIX, "\"" + schema + "\".");
    }

    /**
     * Which database of which cluster a database is, and the cluster's slot map.
     *
     * @param shard its number
     * @param names the names of all shards, by number
     * @param schemaVersion the last SQL file that was applied
     * @param unused the number of shards that have no events, whose databases need not be given
     */
    record Identity(
            UUID cluster,
            int shard,
            List<String> names,
            List<Integer> slotMap,
            int mapVersion,
            int schemaVersion,
            int unused) {
        boolean isSameCluster(Identity other) {
            return cluster.equals(other.cluster);
        }
    }

    /** Returns the identity; empty if the library has not opened the database as a shard yet. */
    Optional<Identity> findIdentity(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findIdentity);
                ResultSet row = statement.executeQuery()) {
            if (!row.next()) {
                return Optional.empty();
            }
            String[] names = (String[]) row.getArray(3).getArray();
            return Optional.of(new Identity(
                    row.getObject(1, UUID.class),
                    row.getInt(2),
                    List.of(names),
                    numbers(row.getArray(4)),
                    row.getInt(5),
                    row.getInt(6),
                    row.getInt(7)));
        }
    }

    /** Returns the incarnation of the database; {@code null} if it is being restored, or that is not recorded yet. */
    @Nullable
    String findIncarnation(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findIncarnation);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getString(1);
        }
    }

    /** Returns the id of a stream. */
    Optional<Integer> findStream(Connection connection, String stream) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findStream)) {
            statement.setString(1, stream);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? Optional.of(row.getInt(1)) : Optional.empty();
            }
        }
    }

    /**
     * Where the keys of a stream belong, as a shard says.
     *
     * @param map the map of its partitions there
     * @param slotMap for each key slot the number of its shard, of a stream whose keys stay while those of others move; empty: it is
     *     none
     */
    record StoredMap(PartitionMap map, List<Integer> slotMap) {}

    /**
     * Returns the newest map of a stream; empty if the stream does not exist.
     */
    Optional<StoredMap> findMap(Connection connection, String stream) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findMap)) {
            statement.setString(1, stream);
            return readMap(statement);
        }
    }

    /** Returns the map of a stream that followed a version; empty if none is known to have followed. */
    Optional<StoredMap> findNextMap(Connection connection, String stream, int version) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findNextMap)) {
            statement.setInt(1, version);
            statement.setString(2, stream);
            return readMap(statement);
        }
    }

    private static Optional<StoredMap> readMap(PreparedStatement statement) throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            if (!row.next()) {
                return Optional.empty();
            }
            Array slots = row.getArray(4);
            PartitionMap map = slots == null
                    ? PartitionMap.first(row.getInt(2), row.getInt(1))
                    : new PartitionMap(row.getInt(2), row.getInt(3), numbers(slots));
            Array slotMap = row.getArray(5);
            return Optional.of(new StoredMap(map, slotMap == null ? List.of() : numbers(slotMap)));
        }
    }

    private static List<Integer> numbers(Array array) throws SQLException {
        return Arrays.stream((Number[]) array.getArray()).map(Number::intValue).toList();
    }

    /**
     * Appends a batch, or finds it stored already.
     *
     * @param sink {@code null}: the producer need not be remembered
     * @param incarnation that of the database when the stream's id was read
     * @return whether it was not stored before
     */
    boolean append(
            Connection connection,
            @Nullable String sink,
            String incarnation,
            int timeLimitMs,
            int streamId,
            EventBatch batch)
            throws SQLException {
        List<EncodedEvent> events = batch.events();
        try (PreparedStatement statement = connection.prepareStatement(append)) {
            statement.setString(1, sink);
            statement.setObject(2, batch.producer());
            statement.setLong(3, batch.number());
            statement.setInt(4, batch.mapVersion());
            statement.setString(5, incarnation);
            statement.setInt(6, timeLimitMs);
            statement.setString(7, batch.stream());
            statement.setInt(8, streamId);
            statement.setInt(9, batch.target().partition());
            statement.setArray(
                    10,
                    connection.createArrayOf(
                            "text", events.stream().map(EncodedEvent::key).toArray()));
            statement.setArray(
                    11,
                    connection.createArrayOf(
                            "bytea", events.stream().map(EncodedEvent::value).toArray(byte[][]::new)));
            statement.setArray(
                    12,
                    connection.createArrayOf(
                            "text", events.stream().map(EncodedEvent::headers).toArray()));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /** Adds segments that a partition needs for a number of further events. Returns how many: none, if it has what it needs. */
    int ensureSegments(Connection connection, String incarnation, int streamId, int partition, int events)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(ensureSegments)) {
            statement.setString(1, incarnation);
            statement.setInt(2, streamId);
            statement.setInt(3, partition);
            statement.setLong(4, events);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getInt(1);
            }
        }
    }

    /**
     * Tells the consumers of all processes, at the commit, that partitions have new events.
     *
     * @param changes stream ids and partitions, separated by colons
     */
    void signal(Connection connection, String sender, List<String> changes) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(NOTIFY)) {
            statement.setString(1, schema + "_wake");
            statement.setString(2, sender + " " + (changes.size() > CHANGES_MAX ? "*" : String.join(",", changes)));
            statement.execute();
        }
    }
}
