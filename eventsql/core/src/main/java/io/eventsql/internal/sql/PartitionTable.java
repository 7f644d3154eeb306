package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.postgresql.PGConnection;

/** {@code stream_partition} and {@code producer_batch}: where each partition starts and ends. */
public final class PartitionTable {
    // Indexes: the primary key of stream_partition, and producer_batch_head for the last entry. Takes no row lock.
    private static final String HEADS = """
            SELECT stream_id, partition, log_start, next_offset
            FROM eventsql.heads_v1(?)""";

    // Scans the table; indexes: producer_batch_head, the primary key of outbox_producer. Locks the deleted rows.
    private static final String DELETE_DEAD_PRODUCERS = "SELECT eventsql.delete_dead_producers_v1(?)";

    private final String heads;
    private final String deleteDeadProducers;

    public PartitionTable(SqlSchema schema) {
        heads = schema.sql(HEADS);
        deleteDeadProducers = schema.sql(DELETE_DEAD_PRODUCERS);
    }

    /**
     * Where the log of a partition starts and ends.
     *
     * @param logStart the first offset that still exists
     * @param head the offset of the next event
     */
    public record Head(int streamId, int partition, long logStart, long head) {}

    /** Returns log start and head of all partitions of the given streams, by stream and partition. */
    public List<Head> heads(Connection connection, int[] streamIds) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(heads)) {
            statement.setArray(1, connection.unwrap(PGConnection.class).createArrayOf("int4", streamIds));
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
     * Deletes the rows of producers that have not published for a day: none of their batches can still be in flight.
     * Keeps the newest row of each partition, which is its head, and the rows of outboxes, which may resend after any
     * time.
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
