package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

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

    // Reads the catalog: pg_class by namespace, pg_inherits by pg_inherits_relid_seqno_index. Takes no row lock.
    private static final String FIND_SEGMENTS = """
            SELECT c.relname,
                   CASE
                       WHEN i.inhrelid IS NULL THEN 'DETACHED'
                       WHEN i.inhdetachpending THEN 'DETACHING'
                       ELSE 'ATTACHED'
                   END
            FROM pg_class c
            LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
            WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'eventsql.stream'::regclass)
              AND c.relkind = 'r' AND c.relname ~ ?
            ORDER BY coalesce(i.inhdetachpending, false) DESC, length(c.relname), c.relname""";

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
     * The table of a segment.
     *
     * @param table its name, without the schema
     * @param number the segment holds the offsets from {@code number * segmentSize} up to the next segment's
     */
    public record Segment(String table, long number, Attachment attachment) {}

    /** Returns the names of the consumers of which a member holds a partition of the stream. */
    public List<String> findActiveConsumers(Connection connection, int streamId) {
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_ACTIVE_CONSUMERS), streamId)
                .getValues(0, String.class);
    }

    /** Returns all segments of a partition, including those left by an interrupted clearing; detaching ones first. */
    public List<Segment> findSegments(Connection connection, StreamSpec stream, int partition) {
        String parent = SqlSchema.partitionTable(stream.name(), partition);
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_SEGMENTS), "^" + parent.substring(parent.indexOf('.') + 1) + "_s[0-9]+$")
                .map(row -> {
                    String table = row.get(0, String.class);
                    long number = Long.parseLong(table.substring(table.lastIndexOf("_s") + "_s".length()));
                    return new Segment(table, number, Attachment.valueOf(row.get(1, String.class)));
                });
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
    public void detach(Connection connection, StreamSpec stream, int partition, Segment segment) throws SQLException {
        String mode = segment.attachment == Attachment.DETACHING ? "FINALIZE" : "CONCURRENTLY";
        String table = SqlSchema.partitionTable(stream.name(), partition);
        try (Statement statement = connection.createStatement()) {
            // Not by lock_timeout, which outside of a transaction would stay set on the connection.
            statement.setQueryTimeout(DETACH_TIMEOUT_SECONDS);
            // CONCURRENTLY locks the parent in SHARE UPDATE EXCLUSIVE mode, and waits for the transactions that use it.
            // FINALIZE completes a detach that was interrupted.
            statement.execute(
                    schema.sql("ALTER TABLE %s DETACH PARTITION eventsql.%s %s".formatted(table, segment.table, mode)));
        }
    }

    /** Drops a detached segment, in the caller's transaction. */
    public void drop(Connection connection, Segment segment) {
        var dsl = Jooq.using(connection);
        dsl.execute("SET LOCAL lock_timeout = " + LOCK_TIMEOUT_MS);
        dsl.execute(schema.sql("DROP TABLE IF EXISTS eventsql." + segment.table));
    }
}
