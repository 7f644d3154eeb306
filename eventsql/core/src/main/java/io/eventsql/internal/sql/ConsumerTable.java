package io.eventsql.internal.sql;

import io.eventsql.StartPosition;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.postgresql.PGConnection;

/** {@code consumer} and {@code consumer_offset}: who reads a stream, and how far. */
public final class ConsumerTable {
    private final SqlSchema schema;
    private final String commit;

    public ConsumerTable(SqlSchema schema) {
        this.schema = schema;
        commit = schema.sql("SELECT * FROM eventsql.commit_offsets_v1(?, ?, ?, ?, ?)");
    }

    /**
     * A partition as its new holder takes it over.
     *
     * @param epoch the holder's epoch: proves that it is the holder
     * @param nextOffset where it begins
     */
    public record Taken(int partition, long epoch, long nextOffset) {}

    /** The offsets of one partition to commit: handled from {@code fromOffset} up to but not {@code toOffset}. */
    public record Handled(int partition, long epoch, long fromOffset, long toOffset) {}

    /** How far a consumer is in one partition. */
    public record Offset(int partition, long nextOffset, long epoch) {}

    /**
     * The consumer's id; created with an offset for each partition if there is none, in the caller's transaction.
     */
    public int register(Connection connection, int streamId, String name, StartPosition start) {
        var dsl = Database.dsl(connection);
        dsl.execute(
                schema.sql("INSERT INTO eventsql.consumer (stream_id, name) VALUES (?, ?)"
                        + " ON CONFLICT ON CONSTRAINT consumer_name_unique DO NOTHING"),
                streamId,
                name);
        int id = Objects.requireNonNull(dsl.fetchSingle(
                        schema.sql("SELECT consumer_id FROM eventsql.consumer WHERE stream_id = ? AND name = ?"),
                        streamId,
                        name)
                .get(0, Integer.class));
        dsl.execute(
                schema.sql("INSERT INTO eventsql.consumer_offset (consumer_id, partition, next_offset)"
                        + " SELECT ?, h.partition, CASE WHEN ? THEN h.next_offset ELSE h.log_start END"
                        + " FROM eventsql.partition_head h JOIN eventsql.stream s ON s.name = h.stream"
                        + " WHERE s.stream_id = ? ORDER BY h.partition ON CONFLICT DO NOTHING"),
                id,
                start == StartPosition.LATEST,
                streamId);
        return id;
    }

    /** Takes all partitions: raises each epoch, which fences out the former holder. Locks the rows in their order. */
    public List<Taken> takeAll(Connection connection, int consumerId) {
        return Database.dsl(connection)
                .fetch(
                        schema.sql("WITH locked AS (SELECT partition FROM eventsql.consumer_offset"
                                + " WHERE consumer_id = ? ORDER BY partition FOR UPDATE)"
                                + " UPDATE eventsql.consumer_offset o SET epoch = o.epoch + 1 FROM locked l"
                                + " WHERE o.consumer_id = ? AND o.partition = l.partition"
                                + " RETURNING o.partition, o.epoch, o.next_offset"),
                        consumerId,
                        consumerId)
                .map(r -> new Taken(r.get(0, Integer.class), r.get(1, Long.class), r.get(2, Long.class)));
    }

    /**
     * Commits offsets, each only if epoch and previous offset are still the given ones.
     *
     * @return the partitions that were committed; the others were lost to another member
     */
    public Set<Integer> commit(Connection connection, int consumerId, List<Handled> handled) throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(commit)) {
            statement.setInt(1, consumerId);
            statement.setArray(
                    2,
                    pg.createArrayOf(
                            "int4",
                            handled.stream().mapToInt(Handled::partition).toArray()));
            statement.setArray(
                    3,
                    pg.createArrayOf(
                            "int8", handled.stream().mapToLong(Handled::epoch).toArray()));
            statement.setArray(
                    4,
                    pg.createArrayOf(
                            "int8",
                            handled.stream().mapToLong(Handled::fromOffset).toArray()));
            statement.setArray(
                    5,
                    pg.createArrayOf(
                            "int8",
                            handled.stream().mapToLong(Handled::toOffset).toArray()));
            Set<Integer> committed = new HashSet<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    committed.add(rows.getInt(1));
                }
            }
            return committed;
        }
    }

    /** Records that a partition is stopped and why, if the epoch is still the given one. */
    public void stop(Connection connection, int consumerId, int partition, long epoch, String error) {
        Database.dsl(connection)
                .execute(
                        schema.sql("UPDATE eventsql.consumer_offset SET state = 'stopped', error = ?"
                                + " WHERE consumer_id = ? AND partition = ? AND epoch = ?"),
                        error,
                        consumerId,
                        partition,
                        epoch);
    }

    /** How far the consumer is; empty if it is not known. */
    public List<Offset> offsets(Connection connection, int streamId, String name) {
        return Database.dsl(connection)
                .fetch(
                        schema.sql("SELECT o.partition, o.next_offset, o.epoch FROM eventsql.consumer c"
                                + " JOIN eventsql.consumer_offset o USING (consumer_id)"
                                + " WHERE c.stream_id = ? AND c.name = ? ORDER BY o.partition"),
                        streamId,
                        name)
                .map(r -> new Offset(r.get(0, Integer.class), r.get(1, Long.class), r.get(2, Long.class)));
    }
}
