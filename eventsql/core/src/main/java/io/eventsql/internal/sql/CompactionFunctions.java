package io.eventsql.internal.sql;

import io.eventsql.CompactionStatus;
import io.eventsql.internal.sql.RetentionFunctions.Step;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** The functions that compact streams, and that say where compaction may have removed events. */
public final class CompactionFunctions {
    // Locks the row of compaction_pass, and what the step changes, each for 100 ms at most.
    private static final String COMPACT = "SELECT eventsql.compact_v1(?::bigint * interval '1 ms')";

    // Scans the segments of compacted streams: the primary key of segment. Takes no row lock.
    private static final String STATUS = """
            SELECT removed_events, removed_tombstones, returned_bytes, dirty_segments, dirty_bytes,
                   coalesce(extract(epoch FROM clock_timestamp() - pass_began_at) * 1000, 0)::bigint AS pass_ms
            FROM eventsql.compaction_status""";

    // Indexes: the primary keys of segment and stream_partition. Takes no row lock.
    private static final String RANGES = """
            SELECT page, first_offset, next_offset
            FROM eventsql.compacted_ranges_v1(?, ?, ?, ?, ?)""";

    private final SqlSchema schema;
    private final String ranges;

    public CompactionFunctions(SqlSchema schema) {
        this.schema = schema;
        ranges = schema.sql(RANGES);
    }

    /**
     * Takes the next step of compaction, in a READ COMMITTED transaction of its own.
     *
     * @param pause how long after the begin of one round over all partitions the next one begins, at least
     * @param warnings gets the sentences about partitions in which nothing could be done
     */
    public Step compact(Connection connection, Duration pause, Consumer<String> warnings) throws SQLException {
        return RetentionFunctions.step(connection, schema.sql(COMPACT), pause, warnings);
    }

    /** Returns what compaction has removed, and what it has still to do. */
    public CompactionStatus status(Connection connection, int shard) {
        org.jooq.Record r = Objects.requireNonNull(Jooq.using(connection).fetchOne(schema.sql(STATUS)));
        return new CompactionStatus(
                shard,
                r.get("removed_events", Long.class),
                r.get("removed_tombstones", Long.class),
                r.get("returned_bytes", Long.class),
                r.get("dirty_segments", Long.class),
                r.get("dirty_bytes", Long.class),
                Duration.ofMillis(r.get("pass_ms", Long.class)));
    }

    /**
     * Returns the ranges in which compaction may have removed events, as far as they overlap the given ranges of partitions;
     * they may be larger. To be called after the pages were read: an event is removed together with the change of its range.
     *
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @param partitions the partition of each range
     */
    public List<CompactedRanges> ranges(
            Connection connection,
            @Nullable String incarnation,
            int streamId,
            List<Integer> partitions,
            List<OffsetRange> of)
            throws SQLException {
        List<List<OffsetRange>> found = new ArrayList<>();
        of.forEach(range -> found.add(new ArrayList<>()));
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(ranges)) {
            statement.setString(1, incarnation);
            statement.setInt(2, streamId);
            statement.setArray(
                    3,
                    pg.createArrayOf(
                            "int4",
                            partitions.stream().mapToInt(Integer::intValue).toArray()));
            statement.setArray(
                    4,
                    pg.createArrayOf(
                            "int8", of.stream().mapToLong(OffsetRange::first).toArray()));
            statement.setArray(
                    5,
                    pg.createArrayOf(
                            "int8", of.stream().mapToLong(OffsetRange::next).toArray()));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    found.get(row.getInt(1)).add(new OffsetRange(row.getLong(2), row.getLong(3)));
                }
            }
        }
        return found.stream().map(CompactedRanges::new).toList();
    }
}
