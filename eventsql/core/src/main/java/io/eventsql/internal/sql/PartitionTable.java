package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** {@code stream_partition} and {@code producer_batch}: where each partition starts and ends. */
public final class PartitionTable {
    // Indexes: the primary key of stream_partition, and producer_batch_head for the last entry. Takes no row lock.
    private static final String HEADS = """
            SELECT stream_id, partition, log_start, next_offset
            FROM eventsql.heads_v1(?, ?)""";

    // Scans both tables; indexes: producer_batch_head, the primary key of outbox_producer. Locks the deleted rows.
    private static final String DELETE_DEAD_PRODUCERS = "SELECT eventsql.delete_dead_producers_v1(?)";

    // Indexes: stream_name_unique, producer_batch_head for the last entry, producer_batch_of_producer. Takes no row
    // lock.
    private static final String LAST_BATCHES = """
            SELECT a.ordinal, s.stream_id, h.next_offset, b.batch_number, b.base_offset, b.next_offset
            FROM unnest(?::text[], ?::int[]) WITH ORDINALITY AS a (stream, partition, ordinal)
            JOIN eventsql.stream s ON s.name = a.stream
            CROSS JOIN LATERAL (
                SELECT n.next_offset
                FROM eventsql.producer_batch n
                WHERE n.stream_id = s.stream_id AND n.partition = a.partition
                ORDER BY n.next_offset DESC LIMIT 1) h
            LEFT JOIN LATERAL (
                SELECT o.batch_number, o.base_offset, greatest(o.next_offset, o.base_offset) AS next_offset
                FROM eventsql.producer_batch o
                WHERE o.producer_id = ? AND o.stream_id = s.stream_id AND o.partition = a.partition
                ORDER BY o.batch_number DESC LIMIT 1) b ON true""";

    // Index: the primary key of stream_partition. Takes no row lock.
    private static final String COUNT = "SELECT count(*)::int FROM eventsql.stream_partition WHERE stream_id = ?";

    private final SqlSchema schema;
    private final String heads;
    private final String lastBatches;
    private final String deleteDeadProducers;

    public PartitionTable(SqlSchema schema) {
        this.schema = schema;
        heads = schema.sql(HEADS);
        lastBatches = schema.sql(LAST_BATCHES);
        deleteDeadProducers = schema.sql(DELETE_DEAD_PRODUCERS);
    }

    /** Returns the number of partitions of a stream; they are numbered from 0. */
    public int count(Connection connection, int streamId) {
        return Objects.requireNonNull((Integer) Jooq.using(connection).fetchValue(schema.sql(COUNT), streamId));
    }

    /**
     * Where the log of a partition starts and ends.
     *
     * @param logStart the first offset that still exists
     * @param head the offset of the next event
     */
    public record Head(int streamId, int partition, long logStart, long head) {}

    /**
     * Returns log start and head of all partitions of the given streams, by stream and partition.
     *
     * @param incarnation that of the database when the ids were read; {@code null}: not compared
     */
    public List<Head> heads(Connection connection, @Nullable String incarnation, int[] streamIds) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(heads)) {
            statement.setString(1, incarnation);
            statement.setArray(2, connection.unwrap(PGConnection.class).createArrayOf("int4", streamIds));
            List<Head> result = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    result.add(new Head(rows.getInt(1), rows.getInt(2), rows.getLong(3), rows.getLong(4)));
                }
            }
            return result;
        }
    }

    /**
     * The newest batch of a producer in a partition.
     *
     * @param index the partition's place in the request, from 0
     * @param head the offset of the partition's next event, of any producer
     * @param number the batch's number; {@code null} if the partition has no batch of this producer
     */
    public record LastBatch(
            int index,
            int streamId,
            long head,
            @Nullable Long number,
            @Nullable Long baseOffset,
            @Nullable Long nextOffset) {}

    /** Returns the newest batch of a producer in each partition; without those that do not exist. */
    public List<LastBatch> lastBatches(Connection connection, UUID producer, String[] streams, int[] partitions)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(lastBatches)) {
            statement.setArray(1, pg.createArrayOf("text", streams));
            statement.setArray(2, pg.createArrayOf("int4", partitions));
            statement.setObject(3, producer);
            List<LastBatch> result = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    result.add(new LastBatch(
                            rows.getInt(1) - 1,
                            rows.getInt(2),
                            rows.getLong(3),
                            rows.getObject(4, Long.class),
                            rows.getObject(5, Long.class),
                            rows.getObject(6, Long.class)));
                }
            }
            return result;
        }
    }

    /**
     * Deletes the rows of producers that have not published for a day: none of their batches can still be in flight.
     * Keeps the newest row of each partition, which is its head, and the rows of outboxes, which may resend after any
     * time: those of a former producer of an outbox until 30 days after a later one was registered.
     *
     * @return how many rows were deleted
     */
    public long deleteDeadProducers(Connection connection, UUID own) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(deleteDeadProducers)) {
            statement.setObject(1, own);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1);
            }
        }
    }
}
