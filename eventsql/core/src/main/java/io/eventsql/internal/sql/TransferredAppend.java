package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** The statements of a shard that receives events from the outbox of another database. */
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

    /** No batch has it: the numbers of the partitions differ, and the last ones stored are compared in any case. */
    private static final long NO_NUMBER = -1;

    private final SqlSchema schema;
    private final String append;
    private final String register;

    public TransferredAppend(SqlSchema schema) {
        this.schema = schema;
        append = schema.sql(APPEND);
        register = schema.sql(REGISTER);
    }

    /** A partition of this shard. */
    public record Target(int streamId, int partition) {}

    /**
     * Registers a producer of an outbox, so that its batches are remembered until a later producer of the outbox was
     * registered, and for 30 days more. The outbox has no events of its other producers left. To be called in a transaction
     * that fails if its commit is in doubt ({@link Database#replicatedTransaction}): it returns no row for a new producer.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @return the number of the last event that each partition of the streams has from it, without those that have
     *     none
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
            return numbers;
        }
    }

    /**
     * Appends events to partitions, directly after the last number that the caller believes stored in each: one round trip in
     * autocommit mode.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @param previousNumbers for each partition that last number; {@code null}: none
     * @param numbers for each partition the number of its last event sent now
     * @param erased the positions among all events, from 1, of those whose values were erased on their way
     * @return the base offset of each partition; when it returns, the events are committed
     * @throws SQLException {@link SqlErrors#NOT_NEXT} if the last number of a partition is another one; {@link
     *     SqlErrors#MAP_VERSION} if the events were routed by another map of their stream
     */
    public long[] execute(
            Connection connection,
            UUID producer,
            MapFence maps,
            @Nullable String incarnation,
            AppendStatement.Rows rows,
            List<@Nullable Long> previousNumbers,
            List<Long> numbers,
            List<Integer> erased)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        int before = maps.parameters();
        String sql = maps.precede(schema, append) + CommitWarnings.COLUMN;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            maps.set(connection, statement, producer, NO_NUMBER, rows.streamIds(), rows.partitions());
            statement.setObject(before + 1, producer);
            statement.setObject(before + 2, maps.version(), Types.INTEGER);
            statement.setString(before + 3, incarnation);
            statement.setInt(before + 4, NetworkTimeout.timeLimitMs(connection));
            statement.setArray(before + 5, pg.createArrayOf("text", rows.streams()));
            statement.setArray(before + 6, pg.createArrayOf("int4", rows.streamIds()));
            statement.setArray(before + 7, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(before + 8, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(before + 9, pg.createArrayOf("int8", previousNumbers.toArray()));
            statement.setArray(before + 10, pg.createArrayOf("int8", numbers.toArray()));
            statement.setArray(before + 11, pg.createArrayOf("text", rows.keys()));
            statement.setArray(before + 12, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(before + 13, pg.createArrayOf("text", rows.headers()));
            statement.setArray(before + 14, pg.createArrayOf("int4", erased.toArray()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                SqlErrors.requireNoDoubt(statement.getWarnings());
                return AppendStatement.firstOffsets(result);
            }
        }
    }
}
