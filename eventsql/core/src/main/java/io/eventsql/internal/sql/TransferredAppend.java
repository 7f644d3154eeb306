package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The statements of a shard that receives events from the outbox of another database, each one round trip in autocommit
 * mode.
 */
public final class TransferredAppend {
    // Locks rows of stream_partition as an append does; index: producer_batch_of_producer.
    private static final String APPEND =
            "SELECT eventsql.append_transferred_v2(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Index: producer_batch_of_producer. Locks the outbox's rows of outbox_producer, and no partition: an append that
    // is
    // late may follow, and is then rejected.
    private static final String REGISTER = """
            SELECT stream_id, partition, number
            FROM eventsql.register_outbox_v1(?, ?, ?, ?)""";

    private final String append;
    private final String register;

    public TransferredAppend(SqlSchema schema) {
        append = schema.sql(APPEND);
        register = schema.sql(REGISTER);
    }

    /** A partition of this shard. */
    public record Target(int streamId, int partition) {}

    /**
     * Registers a producer of an outbox, so that its batches are remembered until a later producer of the outbox was
     * registered, and for 30 days more. The outbox has no events of its other producers left.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @return the number of the last event that each partition of the streams has from it, without those that have
     *     none; as durable as an append
     */
    public Map<Target, Long> registerOutbox(
            Connection connection, @Nullable String incarnation, UUID outbox, UUID producer, int[] streamIds)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(register)) {
            statement.setString(1, incarnation);
            statement.setObject(2, outbox);
            statement.setObject(3, producer);
            statement.setArray(4, connection.unwrap(PGConnection.class).createArrayOf("int4", streamIds));
            Map<Target, Long> numbers = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    numbers.put(new Target(rows.getInt(1), rows.getInt(2)), rows.getLong(3));
                }
            }
            SqlErrors.requireNoDoubt(statement.getWarnings());
            return numbers;
        }
    }

    /**
     * Appends events to partitions, directly after the last number that the caller believes stored in each.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @param previousNumbers for each partition that last number; {@code null}: none
     * @param numbers for each partition the number of its last event sent now
     * @param erased the positions among all events, from 1, of those whose values were erased on their way
     * @return the base offset of each partition; when it returns, the events are committed
     * @throws SQLException {@link SqlErrors#NOT_NEXT} if the last number of a partition is another one
     */
    public long[] execute(
            Connection connection,
            UUID producer,
            int mapVersion,
            @Nullable String incarnation,
            AppendStatement.Rows rows,
            List<@Nullable Long> previousNumbers,
            List<Long> numbers,
            List<Integer> erased)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(append)) {
            statement.setObject(1, producer);
            statement.setInt(2, mapVersion);
            statement.setString(3, incarnation);
            statement.setInt(4, AppendStatement.timeLimitMs(connection));
            statement.setArray(5, pg.createArrayOf("text", rows.streams()));
            statement.setArray(6, pg.createArrayOf("int4", rows.streamIds()));
            statement.setArray(7, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(8, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(9, pg.createArrayOf("int8", previousNumbers.toArray()));
            statement.setArray(10, pg.createArrayOf("int8", numbers.toArray()));
            statement.setArray(11, pg.createArrayOf("text", rows.keys()));
            statement.setArray(12, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(13, pg.createArrayOf("text", rows.headers()));
            statement.setArray(14, pg.createArrayOf("int4", erased.toArray()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                SqlErrors.requireNoDoubt(statement.getWarnings());
                return AppendStatement.firstOffsets(result);
            }
        }
    }
}
