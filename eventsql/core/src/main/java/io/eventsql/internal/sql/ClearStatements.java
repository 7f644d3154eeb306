package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;

/**
 * The statements that clear a stream. None locks the table of the stream or of a partition against publishers and
 * readers; those that lock the table of one segment against them have a lock timeout of {@value #LOCK_TIMEOUT_MS} ms.
 * Table names are filled in by {@code %s}, because DDL takes no parameters.
 */
public final class ClearStatements {
    /** Short, because later requests for any lock on the table queue behind a waiting one. */
    static final int LOCK_TIMEOUT_MS = 2_000;

    static final int DETACH_TIMEOUT_SECONDS = 5;

    // Indexes: consumer_name_unique and the primary key of consumer_partition. Takes no row lock.
    private static final String FIND_ACTIVE_CONSUMERS = """
            SELECT c.name
            FROM eventsql.consumer c
            WHERE c.stream_id = ? AND EXISTS (
                SELECT FROM eventsql.consumer_partition p
                WHERE p.consumer_id = c.consumer_id AND p.member_id IS NOT NULL AND p.expires_at > clock_timestamp())
            ORDER BY c.name""";

    // Index: the primary key of segment. Takes no row lock.
    private static final String COUNT_SEGMENTS = """
            SELECT count(*)
            FROM eventsql.segment
            WHERE stream_id = ? AND partition = ? AND (end_offset <= ? OR first_offset < ? AND ? > ?)""";

    // Index: the primary key of segment. Takes no row lock.
    private static final String COUNT_COMPACTED = """
            SELECT coalesce(sum(removed_events), 0)
            FROM eventsql.segment
            WHERE stream_id = ? AND partition = ? AND end_offset > ? AND first_offset < ?""";

    // Indexes: the primary key of segment, and in the catalog those of pg_class by name and of pg_inherits by child.
    // Takes
    // no row lock.
    private static final String FIND_EXPIRED = """
            SELECT 'eventsql.' || quote_ident(g.table_name),
                   'eventsql.' || quote_ident(s.table_name || '__p' || g.partition),
                   g.first_offset,
                   CASE
                       WHEN i.inhrelid IS NULL THEN 'DETACHED'
                       WHEN i.inhdetachpending THEN 'DETACHING'
                       ELSE 'ATTACHED'
                   END
            FROM eventsql.segment g
            JOIN eventsql.stream s USING (stream_id)
            LEFT JOIN pg_inherits i ON i.inhrelid = to_regclass('eventsql.' || quote_ident(g.table_name))
            WHERE g.stream_id = ? AND g.partition = ? AND g.state IN ('expired', 'empty')
            ORDER BY coalesce(i.inhdetachpending, false) DESC, g.first_offset""";

    // Index: the primary key of segment. Locks the row.
    private static final String DELETE = """
            DELETE FROM eventsql.segment
            WHERE stream_id = ? AND partition = ? AND first_offset = ?""";

    // Index: the primary key. Locks the row that every append locks first, then the segment exclusively.
    private static final String START_AT_HEAD = "SELECT eventsql.start_at_head_v1(?, ?)";

    private final SqlSchema schema;

    public ClearStatements(SqlSchema schema) {
        this.schema = schema;
    }

    /** Whether a segment's table still belongs to its partition's. */
    public enum Attachment {
        ATTACHED,
        /** A detach was interrupted; no other segment of the partition can be detached before it is finalized. */
        DETACHING,
        DETACHED
    }

    /**
     * A segment whose events have expired.
     *
     * @param table its name as SQL, with the schema
     * @param parent the name of its partition's table as SQL, with the schema
     */
    public record Segment(
            int streamId, int partition, long firstOffset, String table, String parent, Attachment attachment) {}

    /** Returns the names of the consumers of which a member holds a partition of the stream. */
    public List<String> findActiveConsumers(Connection connection, int streamId) {
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_ACTIVE_CONSUMERS), streamId)
                .getValues(0, String.class);
    }

    /** Returns how many segments of a partition clearing would empty, with those that an interrupted clearing has left. */
    public int countSegments(Connection connection, PartitionTable.Head head) {
        return Objects.requireNonNull(Jooq.using(connection)
                        .fetchOne(
                                schema.sql(COUNT_SEGMENTS),
                                head.streamId(),
                                head.partition(),
                                head.head(),
                                head.head(),
                                head.head(),
                                head.logStart()))
                .get(0, Integer.class);
    }

    /** Returns how many events between the log's start and its head compaction has removed. */
    public long countCompacted(Connection connection, PartitionTable.Head head) {
        return Objects.requireNonNull(Jooq.using(connection)
                        .fetchOne(
                                schema.sql(COUNT_COMPACTED),
                                head.streamId(),
                                head.partition(),
                                head.logStart(),
                                head.head()))
                .get(0, Long.class);
    }

    /** Returns the segments below the log's start of a partition; detaching ones first. */
    public List<Segment> findExpired(Connection connection, int streamId, int partition) {
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_EXPIRED), streamId, partition)
                .map(row -> new Segment(
                        streamId,
                        partition,
                        row.get(2, Long.class),
                        row.get(0, String.class),
                        row.get(1, String.class),
                        Attachment.valueOf(row.get(3, String.class))));
    }

    /**
     * Moves the start of a partition's log to its head and empties the segment that the head is in, in the caller's
     * transaction. The lock on the partition's row makes appends wait until the commit.
     *
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#NOT_READ_COMMITTED} if the transaction has
     *     another isolation level: events appended while it waits for the lock would be deleted
     */
    public void moveLogStartToHead(Connection connection, int streamId, int partition) {
        Jooq.using(connection).fetch(schema.sql(START_AT_HEAD), streamId, partition);
    }

    /**
     * Detaches a segment from its partition without locking out publishers or readers; not inside a transaction. Waits
     * up to {@value #DETACH_TIMEOUT_SECONDS} s for the readers of the partition's table; after a timeout the segment is
     * {@link Attachment#DETACHING}.
     */
    public void detach(Connection connection, Segment segment) throws SQLException {
        String mode = segment.attachment == Attachment.DETACHING ? "FINALIZE" : "CONCURRENTLY";
        try (Statement statement = connection.createStatement()) {
            // Not by lock_timeout, which outside of a transaction would stay set on the connection.
            statement.setQueryTimeout(DETACH_TIMEOUT_SECONDS);
            // CONCURRENTLY locks the parent in SHARE UPDATE EXCLUSIVE mode, and waits for the transactions that use it.
            // FINALIZE completes a detach that was interrupted.
            statement.execute("ALTER TABLE %s DETACH PARTITION %s %s".formatted(segment.parent, segment.table, mode));
        }
    }

    /** Drops a detached segment and deletes its row, in the caller's transaction. */
    public void drop(Connection connection, Segment segment) {
        var dsl = Jooq.using(connection);
        dsl.execute("SET LOCAL lock_timeout = " + LOCK_TIMEOUT_MS);
        dsl.execute("DROP TABLE IF EXISTS " + segment.table);
        dsl.execute(schema.sql(DELETE), segment.streamId, segment.partition, segment.firstOffset);
    }
}
