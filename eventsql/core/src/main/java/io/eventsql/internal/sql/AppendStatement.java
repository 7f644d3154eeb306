package io.eventsql.internal.sql;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The one statement that appends: {@code append_v1} of the schema's SQL files, one round trip in autocommit mode. It
 * locks the batch's rows of {@code stream_partition} in their order and holds them until the commit is visible.
 */
public final class AppendStatement {
    private final String sql;

    public AppendStatement(SqlSchema schema) {
        sql = schema.sql("SELECT eventsql.append_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    }

    /**
     * A batch as the function takes it. The first four arrays have one element for each partition, sorted by stream id
     * and partition; the others one for each event, in the order of the partitions.
     *
     * @param groups the event's partition, as an index from 1 into the first four arrays
     * @param indexes the event's place among its partition's events, from 0
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
            byte[][] values,
            @Nullable String[] headers) {}

    /** The database committed, but warned: the commit may not have reached the replicas it was to wait for. */
    public static final class WarnedException extends SQLException {
        private static final long serialVersionUID = 1L;

        WarnedException(SQLException warning) {
            super("The database warned: " + warning.getMessage(), "01000", warning);
        }
    }

    /**
     * Appends the batch, or finds that this number is stored already.
     *
     * @return the base offset of each partition; when it returns, the batch is committed
     * @throws SQLException as {@link SqlErrors} tells apart; {@link WarnedException} if it is in doubt
     */
    public long[] execute(Connection connection, UUID producer, long number, int mapVersion, Rows rows)
            throws SQLException {
        return execute(connection, producer, number, mapVersion, rows, true);
    }

    /** The same as a part of the caller's transaction: nothing is in doubt before that is committed. */
    public long[] executeInTransaction(Connection connection, UUID producer, long number, int mapVersion, Rows rows)
            throws SQLException {
        return execute(connection, producer, number, mapVersion, rows, false);
    }

    private long[] execute(
            Connection connection, UUID producer, long number, int mapVersion, Rows rows, boolean failIfWarned)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setObject(1, producer);
            statement.setLong(2, number);
            statement.setInt(3, mapVersion);
            statement.setArray(4, pg.createArrayOf("text", rows.streams()));
            statement.setArray(5, pg.createArrayOf("int4", rows.streamIds()));
            statement.setArray(6, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(7, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(8, pg.createArrayOf("int4", rows.groups()));
            statement.setArray(9, pg.createArrayOf("int4", rows.indexes()));
            statement.setArray(10, pg.createArrayOf("text", rows.keys()));
            statement.setArray(11, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(12, pg.createArrayOf("text", rows.headers()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                Array bases = result.getArray(1);
                if (failIfWarned && statement.getWarnings() != null) {
                    throw new WarnedException(statement.getWarnings());
                }
                return unboxed((Long[]) bases.getArray());
            }
        }
    }

    private static long[] unboxed(Long[] values) {
        long[] result = new long[values.length];
        for (int i = 0; i < values.length; i++) {
            result[i] = values[i];
        }
        return result;
    }
}
