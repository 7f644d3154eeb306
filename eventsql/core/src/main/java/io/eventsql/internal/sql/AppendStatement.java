package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The statement that appends a batch: one round trip.
 */
public final class AppendStatement {
    // Indexes: the primary key of stream_partition, producer_batch_of_producer and producer_batch_head. Locks the
    // batch's rows of stream_partition, in the order of stream and partition, until the commit is visible.
    private static final String APPEND = "SELECT eventsql.append_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    private final String append;

    public AppendStatement(SqlSchema schema) {
        append = schema.sql(APPEND);
    }

    /**
     * A batch as the function takes it. The first four arrays have one element for each partition, sorted by stream id
     * and partition; the others one for each event, in the order of the partitions.
     *
     * @param groups the event's partition, as an index from 1 into the first four arrays
     * @param indexes the event's position among the events of its partition, from 0
     * @param values {@code null}: a tombstone
     * @param headers JSON objects or {@code null}
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays go to the driver as they are
    public record Rows(
            String[] streams,
            int[] streamIds,
            int[] partitions,
            int[] counts,
            int[] groups,
            int[] indexes,
            @Nullable String[] keys,
            byte[] @Nullable [] values,
            @Nullable String[] headers) {}

    /** The database committed, but returned a warning: the commit may not have reached the synchronous replicas. */
    public static final class WarnedException extends SQLException {
        private static final long serialVersionUID = 1L;

        WarnedException(SQLException warning) {
            super("The database returned a warning: " + warning.getMessage(), "01000", warning);
        }
    }

    /**
     * Appends the batch, or finds the batch of this number that is stored already: in autocommit mode, where the batch is
     * then committed, or in the caller's transaction.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @return the base offset of each partition
     * @throws SQLException see {@link SqlErrors}; {@link WarnedException} if the batch is in doubt, only in autocommit mode
     */
    public long[] execute(
            Connection connection, UUID producer, long number, int mapVersion, @Nullable String incarnation, Rows rows)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(append)) {
            statement.setObject(1, producer);
            statement.setLong(2, number);
            statement.setInt(3, mapVersion);
            statement.setString(4, incarnation);
            statement.setInt(5, timeLimitMs(connection));
            statement.setArray(6, pg.createArrayOf("text", rows.streams()));
            statement.setArray(7, pg.createArrayOf("int4", rows.streamIds()));
            statement.setArray(8, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(9, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(10, pg.createArrayOf("int4", rows.groups()));
            statement.setArray(11, pg.createArrayOf("int4", rows.indexes()));
            statement.setArray(12, pg.createArrayOf("text", rows.keys()));
            statement.setArray(13, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(14, pg.createArrayOf("text", rows.headers()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                if (connection.getAutoCommit()) { // otherwise the commit is still to come
                    SqlErrors.requireNoDoubt(statement.getWarnings());
                }
                return firstOffsets(result);
            }
        }
    }

    /**
     * Returns the time after which the function begins nothing more: half of the connection's network timeout. What it
     * has begun ends within the other half.
     */
    static int timeLimitMs(Connection connection) throws SQLException {
        return connection.getNetworkTimeout() / 2;
    }

    /** Returns the base offsets, which are the only column of the result's current row. */
    static long[] firstOffsets(ResultSet result) throws SQLException {
        Long[] bases = (Long[]) result.getArray(1).getArray();
        return Arrays.stream(bases).mapToLong(Long::longValue).toArray();
    }
}
