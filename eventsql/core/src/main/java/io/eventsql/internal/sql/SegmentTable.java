package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.util.Objects;

/**
 * The tables that hold a stream's events: one for the stream, one for each partition, one for each segment.
 *
 * <p>A segment is added with CREATE TABLE and ATTACH PARTITION, which lock the parents only against other such changes
 * (SHARE UPDATE EXCLUSIVE): publishers and readers go on. {@code CREATE TABLE … PARTITION OF} would lock them out.
 */
public final class SegmentTable {
    private static final int LOCK_CLASS = 0x45534547; // "ESEG": keeps two processes from adding the same segment

    /**
     * Events are only added, and dropped with their segment; no plan of the library needs statistics. By default
     * autovacuum would read a growing segment again and again (decision 10).
     */
    private static final String AUTOVACUUM_SELDOM =
            " WITH (autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,"
                    + " autovacuum_analyze_threshold = 500000, autovacuum_analyze_scale_factor = 0.5)";

    private final SqlSchema schema;

    public SegmentTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Creates the tables of a stream and of its partitions, without segments, in the caller's transaction. */
    public void createStreamTables(Connection connection, StreamSpec stream) {
        var dsl = Jooq.using(connection);
        dsl.execute(schema.sql("CREATE TABLE " + SqlSchema.eventsTable(stream.name()) + " ("
                + "partition int NOT NULL, event_offset bigint NOT NULL, key text, value bytea NOT NULL, headers json,"
                + " published_at timestamptz NOT NULL) PARTITION BY LIST (partition)"));
        // Its partitions inherit it. A clause of CREATE TABLE only since PostgreSQL 16.
        dsl.execute(schema.sql(
                "ALTER TABLE " + SqlSchema.eventsTable(stream.name()) + " ALTER COLUMN value SET STORAGE EXTERNAL"));
        for (int partition = 0; partition < stream.partitions(); partition++) {
            dsl.execute(schema.sql("CREATE TABLE " + SqlSchema.partitionTable(stream.name(), partition)
                    + " PARTITION OF " + SqlSchema.eventsTable(stream.name()) + " FOR VALUES IN (" + partition
                    + ") PARTITION BY RANGE (event_offset)"));
        }
        if (stream.json()) {
            dsl.execute(schema.sql("CREATE VIEW " + SqlSchema.eventsTable(stream.name()) + "__json AS"
                    + " SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers,"
                    + " published_at FROM " + SqlSchema.eventsTable(stream.name())));
        }
    }

    /**
     * Adds a segment unless it exists or lies below the log's start, in the caller's transaction. Who learned of an older
     * head may ask for one that clearing has just detached or dropped.
     *
     * @return whether it was added
     */
    public boolean addSegment(Connection connection, StreamSpec stream, int partition, long segment) {
        var dsl = Jooq.using(connection);
        String table = schema.sql(SqlSchema.segmentTable(stream.name(), partition, segment));
        String parent = schema.sql(SqlSchema.partitionTable(stream.name(), partition));
        dsl.execute("SET LOCAL lock_timeout = '2s'");
        dsl.fetch("SELECT pg_advisory_xact_lock(?, hashtext(?))", LOCK_CLASS, parent);
        boolean needless = Objects.requireNonNull(dsl.fetchValue(
                        schema.sql("SELECT EXISTS (SELECT FROM pg_inherits"
                                + " WHERE inhrelid = to_regclass(?) AND inhparent = ?::regclass)"
                                + " OR EXISTS (SELECT FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = ? AND p.partition = ? AND p.log_start >= ?)"),
                        table,
                        parent,
                        stream.name(),
                        partition,
                        (segment + 1) * stream.segmentSize()))
                .equals(true);
        if (needless) {
            return false;
        }
        // The only index: offsets are looked up, and read in their order. Constraints: a table without those that a
        // user has added to the stream's table could not be attached.
        dsl.execute("CREATE TABLE " + table + " (LIKE " + parent
                + " INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE, PRIMARY KEY (event_offset))"
                + AUTOVACUUM_SELDOM);
        dsl.execute("ALTER TABLE " + parent + " ATTACH PARTITION " + table + " FOR VALUES FROM ("
                + segment * stream.segmentSize() + ") TO (" + (segment + 1) * stream.segmentSize() + ")");
        return true;
    }
}
