package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The segments of a stream's partitions, each a table. They are added by a function that runs with the rights of its
 * owner, so that publishers need no right to create tables.
 */
public final class SegmentTable {
    // Reads the catalog: pg_inherits_relid_seqno_index. Takes no row lock.
    private static final String FIND_MISSING = """
            SELECT n
            FROM generate_series(?::bigint, ?::bigint - 1) AS n
            WHERE NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = to_regclass(? || n))
            ORDER BY n""";

    // Locks the parent in SHARE UPDATE EXCLUSIVE mode, and waits for that for 2 s at most.
    private static final String ADD = "SELECT eventsql.add_segment_v1(?, ?, ?, ?)";

    private final SqlSchema schema;

    public SegmentTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Returns those segments of a partition from {@code from} up to {@code to}, exclusive, that do not exist. */
    public List<Long> findMissing(Connection connection, StreamSpec stream, int partition, long from, long to) {
        return Jooq.using(connection)
                .fetch(FIND_MISSING, from, to, schema.sql(SqlSchema.segmentTablePrefix(stream.name(), partition)))
                .map(row -> row.get(0, Long.class));
    }

    /**
     * Adds a segment unless it exists or lies below the log's start, in the caller's transaction, which must be READ
     * COMMITTED.
     *
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @return whether it was added
     */
    public boolean addSegment(
            Connection connection, @Nullable String incarnation, int streamId, int partition, long segment) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql(ADD), incarnation, streamId, partition, segment));
    }
}
