package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * In the shard that gets events from another database's outbox: {@code append_transferred_v1} of the schema's SQL files,
 * one round trip in autocommit mode. It locks rows of {@code stream_partition} as an append does.
 */
public final class TransferredAppend {
    private final String append;
    private final String lastNumbers;

    public TransferredAppend(SqlSchema schema) {
        append = schema.sql("SELECT eventsql.append_transferred_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        // Index: producer_batch_of_producer. Locks no partition: what is late may come after it, and is refused then.
        lastNumbers = schema.sql("SELECT stream_id, partition, number FROM eventsql.transferred_numbers_v1(?, ?)");
    }

    /** A partition of this shard. */
    public record Target(int streamId, int partition) {}

    /**
     * Makes an outbox known here, so that what is stored of it is never forgotten, and returns the number of the last
     * event that each partition of the streams has from it; without those that have none. What it returns is as durable
     * as an append.
     */
    public Map<Target, Long> lastNumbers(Connection connection, UUID producer, int[] streamIds) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(lastNumbers)) {
            statement.setObject(1, producer);
            statement.setArray(2, connection.unwrap(PGConnection.class).createArrayOf("int4", streamIds));
            Map<Target, Long> numbers = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    numbers.put(new Target(rows.getInt(1), rows.getInt(2)), rows.getLong(3));
                }
            }
            if (statement.getWarnings() != null) {
                throw new AppendStatement.WarnedException(statement.getWarnings());
            }
            return numbers;
        }
    }

    /**
     * Appends events, each partition's directly behind the last one that the caller believes to be there.
     *
     * @param rows without its groups and indexes
     * @param afters for each partition that last number; {@code null}: none
     * @param numbers for each partition the number of its last event sent now
     * @return the base offset of each partition; when it returns, the events are committed
     * @throws SQLException {@link SqlErrors#NOT_NEXT} if another number is the last
     */
    public long[] execute(
            Connection connection,
            UUID producer,
            int mapVersion,
            AppendStatement.Rows rows,
            List<@Nullable Long> afters,
            List<Long> numbers)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(append)) {
            statement.setObject(1, producer);
            statement.setInt(2, mapVersion);
            statement.setArray(3, pg.createArrayOf("text", rows.streams()));
            statement.setArray(4, pg.createArrayOf("int4", rows.streamIds()));
            statement.setArray(5, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(6, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(7, pg.createArrayOf("int8", afters.toArray()));
            statement.setArray(8, pg.createArrayOf("int8", numbers.toArray()));
            statement.setArray(9, pg.createArrayOf("text", rows.keys()));
            statement.setArray(10, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(11, pg.createArrayOf("text", rows.headers()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                Long[] bases = (Long[]) result.getArray(1).getArray();
                if (statement.getWarnings() != null) {
                    throw new AppendStatement.WarnedException(statement.getWarnings());
                }
                return Arrays.stream(bases).mapToLong(Long::longValue).toArray();
            }
        }
    }
}
