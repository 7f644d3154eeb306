package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code key_reservation}: events that a transaction has published to a stream which counts the events of keys. Their keys'
 * versions were raised by that transaction, so the relay appends them without raising these again. Thread-safe.
 */
public final class CountedEvents {
    /** Returned if a version is expected of a key that belongs to another database. */
    public static final long OTHER_DATABASE = -1;

    // A catalog lookup: a database that is not a shard has no such function.
    private static final String CAN_PUBLISH = "SELECT to_regproc(?) IS NOT NULL";

    // Index: the primary key of key_version. Locks the rows of the keys until the caller's transaction ends.
    private static final String PUBLISH = "SELECT eventsql.publish_counted_v2(?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Index: the primary key. The relay's row is locked.
    private static final String TAKE =
            "DELETE FROM eventsql.key_reservation WHERE outbox_id = ANY (?) RETURNING outbox_id";

    // Indexes and locks: those of an append (AppendStatement).
    private static final String APPEND =
            "SELECT eventsql.append_counted_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Until the end of the transaction. raise_key_versions_v1 reads it. The name of the setting is not that of the
    // schema.
    private static final String IGNORE_FOLLOWING = "SELECT set_config('eventsql_keys.relayed', 'on', true)";

    private final String function;
    private final String publish;
    private final String take;
    private final String append;

    public CountedEvents(SqlSchema schema) {
        function = schema.sql("eventsql.publish_counted_v2");
        publish = schema.sql(PUBLISH);
        take = schema.sql(TAKE);
        append = schema.sql(APPEND);
    }

    /**
     * Lets this transaction append events of the outbox that were not counted when they were published, such as rows inserted with SQL,
     * though counted ones of their keys wait behind them.
     */
    public void ignoreFollowing(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(IGNORE_FOLLOWING)) {
            statement.execute();
        }
    }

    /** Returns whether the connection's database can count events: it is a shard, whose schema has this release's version. */
    public boolean canPublish(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(CAN_PUBLISH)) {
            statement.setString(1, function);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /**
     * Events of one call.
     *
     * @param shards the number of the shard that each key belongs to; {@code null} without a key
     * @param homes the partition there before the stream grew for the first time
     * @param values {@code null}: a tombstone
     * @param headers JSON objects or {@code null}
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays go to the driver as they are
    public record Events(
            @Nullable Integer[] shards,
            @Nullable Integer[] homes,
            @Nullable String[] keys,
            byte[] @Nullable [] values,
            @Nullable String[] headers) {}

    /**
     * Publishes events in the caller's transaction.
     *
     * @param expectedVersion the version that the key of the events must have; {@code null}: any
     * @return {@code null}: published; otherwise nothing was written: the version that the key has instead, or {@link
     *     #OTHER_DATABASE}
     */
    public @Nullable Long publish(
            Connection connection,
            UUID clusterId,
            String stream,
            int routingHash,
            Events events,
            @Nullable Long expectedVersion)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(publish)) {
            statement.setObject(1, clusterId);
            statement.setString(2, stream);
            statement.setInt(3, routingHash);
            statement.setArray(4, connection.createArrayOf("int4", events.shards()));
            statement.setArray(5, connection.createArrayOf("int4", events.homes()));
            statement.setArray(6, connection.createArrayOf("text", events.keys()));
            statement.setArray(7, connection.createArrayOf("bytea", events.values()));
            statement.setArray(8, connection.createArrayOf("text", events.headers()));
            statement.setObject(9, expectedVersion, Types.BIGINT);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getObject(1, Long.class);
            }
        }
    }

    /** Returns which of the events, that the relay has taken, are counted already; forgets them. */
    public Set<Long> take(Connection connection, List<Long> outboxIds) throws SQLException {
        Set<Long> counted = new HashSet<>();
        try (PreparedStatement statement = connection.prepareStatement(take)) {
            statement.setArray(1, connection.createArrayOf("int8", outboxIds.toArray()));
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    counted.add(rows.getLong(1));
                }
            }
        }
        return counted;
    }

    /** A partition that the relay's transaction appends to. */
    public record Target(int streamId, int partition) {}

    /**
     * Appends events that are counted already, in the caller's transaction.
     *
     * @param all all partitions that the transaction appends to, in the lock order
     * @return the base offset of each partition of the rows
     */
    public long[] append(
            Connection connection,
            List<Target> all,
            UUID producer,
            long number,
            MapFence maps,
            String incarnation,
            AppendStatement.Rows rows)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(append)) {
            statement.setArray(
                    1,
                    pg.createArrayOf(
                            "int4", all.stream().mapToInt(Target::streamId).toArray()));
            statement.setArray(
                    2,
                    pg.createArrayOf(
                            "int4", all.stream().mapToInt(Target::partition).toArray()));
            AppendStatement.setBatch(2, connection, statement, producer, number, maps, incarnation);
            AppendStatement.setRows(7, pg, statement, rows);
            return AppendStatement.execute(connection, statement);
        }
    }
}
