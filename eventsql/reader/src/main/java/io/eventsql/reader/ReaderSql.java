package io.eventsql.reader;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The statements, other than the fetches. All of them run in read-only transactions, also on a standby: they take no row lock,
 * and call functions that are declared STABLE alone. Immutable.
 */
final class ReaderSql {
    private static final String WRITTEN_PREFIX = "eventsql.";

    // Reads two tables of one row by sequential scans. A schema of the previous release lacks two of the columns.
    private static final String FIND_IDENTITY = """
            SELECT s.cluster_id, s.shard_number, s.shard_names, (SELECT max(version) FROM eventsql.schema_version),
                   ARRAY(SELECT jsonb_array_elements_text(
                       coalesce(to_jsonb(s) -> 'spare_shards', '[]') || coalesce(to_jsonb(s) -> 'removed_shards', '[]'))::int)
            FROM eventsql.shard s""";

    // Index: the primary key of incarnation. NULL if a restore is in progress, or is not recorded yet.
    private static final String FIND_INCARNATION = "SELECT eventsql.incarnation_v1()";

    private static final String IS_STANDBY = "SELECT pg_is_in_recovery()";

    // Index: stream_name_unique.
    private static final String FIND_STREAM = """
            SELECT stream_id, storage = 'blocks'
            FROM eventsql.stream
            WHERE name = ?""";

    // Indexes: the primary key of stream_partition, and producer_batch_head for each head.
    private static final String FIND_HEADS = """
            SELECT partition, log_start, next_offset
            FROM eventsql.heads_v1(?, ?)""";

    // Indexes: the primary keys of segment and of the segments' tables: a binary search.
    private static final String FIND_OFFSET = "SELECT eventsql.offset_at_v1(?, ?, ?)";

    // Indexes: the primary keys of segment and stream_partition.
    private static final String FIND_COMPACTED = """
            SELECT page, first_offset, next_offset
            FROM eventsql.compacted_ranges_v1(?, ?, ?, ?, ?)""";

    private final String prefix;
    private final String findIdentity;
    private final String findIncarnation;
    private final String findStream;
    private final String findHeads;
    private final String findOffset;
    private final String findCompacted;

    ReaderSql(String schema) {
        prefix = "\"" + schema + "\".";
        findIdentity = inSchema(FIND_IDENTITY);
        findIncarnation = inSchema(FIND_INCARNATION);
        findStream = inSchema(FIND_STREAM);
        findHeads = inSchema(FIND_HEADS);
        findOffset = inSchema(FIND_OFFSET);
        findCompacted = inSchema(FIND_COMPACTED);
    }

    /** Returns a statement that is written for the schema {@code eventsql} with the name of this one. */
    String inSchema(String statement) {
        return statement.replace(WRITTEN_PREFIX, prefix);
    }

    /**
     * Which database of which cluster a database is.
     *
     * @param shard its number
     * @param names the names of all shards, by number
     * @param schemaVersion the last SQL file that was applied
     * @param unused the numbers of the shards that have no events
     */
    record Identity(UUID cluster, int shard, List<String> names, int schemaVersion, Set<Integer> unused) {
        boolean isSameShard(Identity other) {
            return isSameCluster(other) && shard == other.shard;
        }

        boolean isSameCluster(Identity other) {
            int common = Math.min(names.size(), other.names.size()); // shards may have been added
            return cluster.equals(other.cluster) && names.subList(0, common).equals(other.names.subList(0, common));
        }
    }

    /** The stream does not exist any more. */
    static final class StreamGoneException extends SQLException {
        private static final long serialVersionUID = 1L;
    }

    /** A stream on one shard. */
    record StreamRow(String name, int id, boolean isBlocks) {}

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
                    List.copyOf(Arrays.asList(names)),
                    row.getInt(4),
                    Set.of((Integer[]) row.getArray(5).getArray())));
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

    /** Returns whether the server replays the log of another one: it may not have everything yet. */
    static boolean isStandby(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(IS_STANDBY);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getBoolean(1);
        }
    }

    Optional<StreamRow> findStream(Connection connection, String name) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findStream)) {
            statement.setString(1, name);
            try (ResultSet row = statement.executeQuery()) {
                return row.next()
                        ? Optional.of(new StreamRow(name, row.getInt(1), row.getBoolean(2)))
                        : Optional.empty();
            }
        }
    }

    /**
     * Returns the ranges of a stream's partitions, by number.
     *
     * @throws StreamGoneException if the id belongs to no stream
     */
    Map<Integer, PartitionRange> findRanges(Connection connection, String incarnation, int shard, StreamRow stream)
            throws SQLException {
        Map<Integer, PartitionRange> ranges = new TreeMap<>();
        try (PreparedStatement statement = connection.prepareStatement(findHeads)) {
            statement.setString(1, incarnation);
            statement.setArray(2, connection.createArrayOf("int4", new Object[] {stream.id()}));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    StreamPartition partition = new StreamPartition(stream.name(), shard, row.getInt(1));
                    ranges.put(partition.partition(), new PartitionRange(partition, row.getLong(2), row.getLong(3)));
                }
            }
        }
        if (ranges.isEmpty()) {
            throw new StreamGoneException();
        }
        return ranges;
    }

    /** Returns the first offset published at a time or later; the head if there is none. */
    long findOffset(Connection connection, StreamPartition partition, Instant time) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(findOffset)) {
            statement.setString(1, partition.stream());
            statement.setInt(2, partition.partition());
            statement.setObject(3, OffsetDateTime.ofInstant(time, ZoneOffset.UTC));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1);
            }
        }
    }

    /** Returns where compaction may have removed events of each range. */
    List<CompactedRanges> findCompacted(
            Connection connection, String incarnation, StreamRow stream, List<FetchedRange> ranges)
            throws SQLException {
        List<CompactedRanges> compacted = new ArrayList<>();
        Object[] partitions = new Object[ranges.size()];
        Object[] firsts = new Object[ranges.size()];
        Object[] nexts = new Object[ranges.size()];
        for (int i = 0; i < ranges.size(); i++) {
            partitions[i] = ranges.get(i).partition().partition();
            firsts[i] = ranges.get(i).firstOffset();
            nexts[i] = ranges.get(i).nextOffset();
            compacted.add(new CompactedRanges());
        }
        try (PreparedStatement statement = connection.prepareStatement(findCompacted)) {
            statement.setString(1, incarnation);
            statement.setInt(2, stream.id());
            statement.setArray(3, connection.createArrayOf("int4", partitions));
            statement.setArray(4, connection.createArrayOf("int8", firsts));
            statement.setArray(5, connection.createArrayOf("int8", nexts));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    compacted.get(row.getInt(1)).add(row.getLong(2), row.getLong(3));
                }
            }
        }
        return compacted;
    }
}
