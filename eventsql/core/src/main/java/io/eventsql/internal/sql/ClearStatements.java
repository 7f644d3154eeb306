package io.eventsql.internal.sql;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/**
 * What clearing does to a stream's tables. No statement locks the stream's or a partition's table against publishers and
 * readers; those that lock one segment's against them give up after {@value #LOCK_TIMEOUT_MS} ms.
 */
public final class ClearStatements {
    /** Behind a waiting lock everybody else waits too. */
    static final int LOCK_TIMEOUT_MS = 2_000;

    private static final int DETACH_TIMEOUT_SECONDS = 5;

    private final SqlSchema schema;

    public ClearStatements(SqlSchema schema) {
        this.schema = schema;
    }

    /** Whether a segment's table still belongs to its partition's. */
    public enum Attachment {
        ATTACHED,
        /** Its detaching was broken off: no other segment of the partition can be detached before it is finished. */
        DETACHING,
        DETACHED
    }

    /**
     * A segment's table.
     *
     * @param table its name, without the schema
     * @param number it holds the offsets from {@code number * segmentSize} up to the next
     */
    public record Segment(String table, long number, Attachment attachment) {}

    /** The consumers of which a member holds a partition, by name. Index: consumer_name_unique, consumer_partition_pkey. */
    public List<String> heldBy(Connection connection, int streamId) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT c.name FROM eventsql.consumer c WHERE c.stream_id = ? AND EXISTS"
                                + " (SELECT FROM eventsql.consumer_partition p WHERE p.consumer_id = c.consumer_id"
                                + " AND p.member_id IS NOT NULL AND p.expires_at > clock_timestamp())"
                                + " ORDER BY c.name"),
                        streamId)
                .getValues(0, String.class);
    }

    /** All segments of a partition, also those that a clearing that was broken off has left; detaching ones first. */
    public List<Segment> segments(Connection connection, StreamSpec stream, int partition) {
        String parent = SqlSchema.partitionTable(stream.name(), partition);
        return Jooq.using(connection)
                .fetch(
                        "SELECT c.relname, CASE WHEN i.inhrelid IS NULL THEN 'DETACHED'"
                                + " WHEN i.inhdetachpending THEN 'DETACHING' ELSE 'ATTACHED' END"
                                + " FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
                                + " WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = ?::regclass)"
                                + " AND c.relkind = 'r' AND c.relname ~ ?"
                                + " ORDER BY coalesce(i.inhdetachpending, false) DESC, length(c.relname), c.relname",
                        schema.sql(parent),
                        "^" + parent.substring(parent.indexOf('.') + 1) + "_s[0-9]+$")
                .map(row -> {
                    String table = row.get(0, String.class);
                    long number = Long.parseLong(table.substring(table.lastIndexOf("_s") + "_s".length()));
                    return new Segment(table, number, Attachment.valueOf(row.get(1, String.class)));
                });
    }

    /**
     * Lets a partition's log begin at its head and empties the segment that the head is in, in the caller's transaction.
     * The partition's row, which every append locks first, keeps appends away until the commit.
     */
    public void startAtHead(Connection connection, int streamId, StreamSpec stream, int partition) throws SQLException {
        var dsl = Jooq.using(connection);
        dsl.execute("SET LOCAL lock_timeout = " + LOCK_TIMEOUT_MS);
        dsl.fetch(
                schema.sql("SELECT FROM eventsql.stream_partition WHERE stream_id = ? AND partition = ? FOR UPDATE"),
                streamId,
                partition);
        // A new statement: it sees what was appended before the lock was granted.
        PartitionTable.Head head = new PartitionTable(schema)
                .heads(connection, new int[] {streamId})
                .get(partition);
        if (head.head() == head.logStart()) {
            return;
        }
        dsl.execute(
                schema.sql("UPDATE eventsql.stream_partition SET log_start = ? WHERE stream_id = ? AND partition = ?"),
                head.head(),
                streamId,
                partition);
        if (head.head() % stream.segmentSize() != 0) {
            dsl.execute("TRUNCATE "
                    + schema.sql(SqlSchema.segmentTable(stream.name(), partition, head.head() / stream.segmentSize())));
        }
    }

    /**
     * Takes a segment out of its partition without locking out anybody; not inside a transaction. It waits for those who
     * read the partition's table, for 5 seconds; broken off, it is to be finished.
     */
    public void detach(Connection connection, StreamSpec stream, int partition, Segment segment) throws SQLException {
        String way = segment.attachment == Attachment.DETACHING ? "FINALIZE" : "CONCURRENTLY";
        try (Statement statement = connection.createStatement()) {
            // Not by lock_timeout: outside of a transaction it would stay with the connection.
            statement.setQueryTimeout(DETACH_TIMEOUT_SECONDS);
            statement.execute(schema.sql("ALTER TABLE " + SqlSchema.partitionTable(stream.name(), partition)
                    + " DETACH PARTITION eventsql." + segment.table + " " + way));
        }
    }

    /** Drops a detached segment, in the caller's transaction. */
    public void drop(Connection connection, Segment segment) {
        var dsl = Jooq.using(connection);
        dsl.execute("SET LOCAL lock_timeout = " + LOCK_TIMEOUT_MS);
        dsl.execute(schema.sql("DROP TABLE IF EXISTS eventsql." + segment.table));
    }
}
