package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;

/**
 * The tables that hold a stream's events: one for the stream, one for each partition, one for each segment.
 *
 * <p>A segment is added with CREATE TABLE and ATTACH PARTITION, which lock the parents only against other such changes
 * (SHARE UPDATE EXCLUSIVE), while {@code CREATE TABLE … PARTITION OF} would lock out publishers and readers. Table
 * names are filled in by {@code %s}, because DDL takes no parameters.
 */
public final class SegmentTable {
    private static final int LOCK_CLASS = 0x45534547; // "ESEG": keeps two processes from adding the same segment

    // Indexes: pg_inherits_relid_seqno_index, stream_name_unique and the primary key of stream_partition. Takes no row
    // lock.
    private static final String IS_NOT_NEEDED = """
            SELECT EXISTS (
                SELECT FROM pg_inherits
                WHERE inhrelid = to_regclass(?) AND inhparent = ?::regclass)
            OR EXISTS (
                SELECT FROM eventsql.stream_partition p
                JOIN eventsql.stream s USING (stream_id)
                WHERE s.name = ? AND p.partition = ? AND p.log_start >= ?)""";

    private final SqlSchema schema;

    public SegmentTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Creates the tables of a stream and of its partitions, without segments, in the caller's transaction. */
    public void createStreamTables(Connection connection, StreamSpec stream) {
        var dsl = Jooq.using(connection);
        String events = SqlSchema.eventsTable(stream.name());
        dsl.execute(schema.sql("""
                CREATE TABLE %s (
                    partition    int         NOT NULL,
                    event_offset bigint      NOT NULL,
                    key          text,
                    value        bytea       NOT NULL,
                    headers      json,
                    published_at timestamptz NOT NULL
                ) PARTITION BY LIST (partition)""".formatted(events)));
        // Uncompressed, so that fetch_v1 can bound the size of rows by that of the TOAST table. The partitions inherit
        // it. A clause of CREATE TABLE only since PostgreSQL 16.
        dsl.execute(schema.sql("""
                ALTER TABLE %s
                    ALTER COLUMN key SET STORAGE EXTERNAL,
                    ALTER COLUMN value SET STORAGE EXTERNAL,
                    ALTER COLUMN headers SET STORAGE EXTERNAL""".formatted(events)));
        for (int partition = 0; partition < stream.partitions(); partition++) {
            String table = SqlSchema.partitionTable(stream.name(), partition);
            dsl.execute(schema.sql("""
                    CREATE TABLE %s PARTITION OF %s
                    FOR VALUES IN (%s)
                    PARTITION BY RANGE (event_offset)""".formatted(table, events, partition)));
        }
        if (stream.json()) {
            dsl.execute(schema.sql("""
                    CREATE VIEW %s AS
                    SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers, published_at
                    FROM %s""".formatted(events + "__json", events)));
        }
    }

    /**
     * Adds a segment unless it exists or lies below the log's start, in the caller's transaction. A caller that knows
     * an older head may ask for a segment that clearing has just detached or dropped.
     *
     * @return whether it was added
     */
    public boolean addSegment(Connection connection, StreamSpec stream, int partition, long segment) {
        var dsl = Jooq.using(connection);
        String table = schema.sql(SqlSchema.segmentTable(stream.name(), partition, segment));
        String parent = schema.sql(SqlSchema.partitionTable(stream.name(), partition));
        long start = segment * stream.segmentSize();
        long end = start + stream.segmentSize();
        dsl.execute("SET LOCAL lock_timeout = '2s'");
        dsl.fetch("SELECT pg_advisory_xact_lock(?, hashtext(?))", LOCK_CLASS, parent);
        boolean isNotNeeded = Boolean.TRUE.equals(
                dsl.fetchValue(schema.sql(IS_NOT_NEEDED), table, parent, stream.name(), partition, end));
        if (isNotNeeded) {
            return false;
        }
        // The primary key is the only index: offsets are looked up, and read in their order. INCLUDING CONSTRAINTS,
        // because a table without the constraints that a user has added to the stream's table could not be attached.
        // Autovacuum: events are only inserted, and dropped with their segment, and no plan of the library needs
        // statistics; by default autovacuum would read a growing segment again and again (decision 10).
        dsl.execute("""
                CREATE TABLE %s (
                    LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
                    PRIMARY KEY (event_offset)
                ) WITH (
                    autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,
                    autovacuum_analyze_threshold = 500000, autovacuum_analyze_scale_factor = 0.5)""".formatted(table, parent));
        // Locks the parent in SHARE UPDATE EXCLUSIVE mode.
        dsl.execute(
                "ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)".formatted(parent, table, start, end));
        return true;
    }
}
