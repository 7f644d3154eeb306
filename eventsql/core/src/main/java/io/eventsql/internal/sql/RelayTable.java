package io.eventsql.internal.sql;

import io.eventsql.internal.sql.OutboxTable.Row;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * {@code outbox_relay}: the one row that says who relays, and the function that takes events out of the outbox under its
 * lock. Every transaction of the relay locks that row first and holds it to its end.
 */
public final class RelayTable {
    private final SqlSchema schema;
    private final String poll;
    private final String lock;
    private final String take;
    private final String channel;

    public RelayTable(SqlSchema schema) {
        this.schema = schema;
        this.channel = schema.name() + Notifications.OUTBOX;
        poll = schema.sql("SELECT held_epoch, waiting FROM eventsql.relay_poll_v1(?, ?, make_interval(secs => ?), ?)");
        lock = schema.sql("SELECT eventsql.relay_lock_v1(?, ?, ?)");
        take = schema.sql("SELECT producer_id, id, stream, key, value, headers, spread, written_at"
                + " FROM eventsql.relay_take_v1(?, ?, ?, ?, ?)");
    }

    /**
     * A right to relay.
     *
     * @param holder the process
     * @param epoch raised by each taker: fences out former holders
     * @param patienceMs how long a transaction may wait, for a lock or for its client
     */
    public record Tenure(UUID holder, long epoch, int patienceMs) {}

    /**
     * The answer to a poll.
     *
     * @param epoch the epoch under which the caller has the lease; {@code null}: somebody else has it
     * @param waiting whether there are events to take; {@code false} without the lease
     */
    public record Polled(@Nullable Long epoch, boolean waiting) {}

    /**
     * Takes the lease if it is free or expired, renews it if it is due, and looks whether events wait: one statement,
     * without a write in most cases. Reads the relay's one row and the first entry of each primary key of the ring.
     *
     * @param epoch of the lease the caller believes to have; 0: none
     * @param notifyHolder whether to notify the holder if that is somebody else
     * @throws SQLException also if the database warned: the replicas may not have the lease
     */
    public Polled poll(Connection connection, UUID holder, long epoch, double leaseSeconds, boolean notifyHolder)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(poll)) {
            statement.setObject(1, holder);
            statement.setLong(2, epoch);
            statement.setDouble(3, leaseSeconds);
            statement.setString(4, notifyHolder ? channel : null);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                Polled polled = new Polled(row.getObject(1, Long.class), row.getBoolean(2));
                if (statement.getWarnings() != null) {
                    throw new AppendStatement.WarnedException(statement.getWarnings());
                }
                return polled;
            }
        }
    }

    /**
     * Locks the relay's row for the caller's transaction.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the tenure has ended
     */
    public void lock(Connection connection, Tenure tenure) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(lock)) {
            setTenure(statement, tenure);
            statement.execute();
        }
    }

    /**
     * A page out of the outbox.
     *
     * @param producer under which other databases know this outbox; {@code null} in an empty page
     * @param rows in the order of their ids
     */
    public record Page(@Nullable UUID producer, List<Row> rows) {}

    /**
     * Deletes and returns the visible events with the lowest ids, under the lock of the relay's row.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the tenure has ended
     */
    public Page take(Connection connection, Tenure tenure, int maxEvents, long maxBytes) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(take)) {
            setTenure(statement, tenure);
            statement.setInt(4, maxEvents);
            statement.setLong(5, maxBytes);
            List<Row> rows = new ArrayList<>();
            UUID producer = null;
            try (ResultSet result = statement.executeQuery()) {
                while (result.next()) {
                    if (producer == null) {
                        producer = result.getObject(1, UUID.class);
                    }
                    rows.add(new Row(
                            result.getLong(2),
                            result.getString(3),
                            result.getString(4),
                            result.getBytes(5),
                            result.getString(6),
                            result.getInt(7),
                            result.getObject(8, OffsetDateTime.class)));
                }
            }
            return new Page(producer, rows);
        }
    }

    private static void setTenure(PreparedStatement statement, Tenure tenure) throws SQLException {
        statement.setObject(1, tenure.holder());
        statement.setLong(2, tenure.epoch());
        statement.setInt(3, tenure.patienceMs());
    }

    /** Gives the lease back: whoever polls next takes it. Does nothing if it is not the caller's any more. */
    public void release(Connection connection, Tenure tenure) {
        Jooq.using(connection)
                .execute(
                        schema.sql("UPDATE eventsql.outbox_relay SET holder = NULL, expires_at = '-infinity'"
                                + " WHERE holder = ? AND epoch = ?"),
                        tenure.holder(),
                        tenure.epoch());
    }

    /**
     * Says whose outbox this is, if nobody has said it before.
     *
     * @return the cluster it belongs to
     */
    public UUID claim(Connection connection, UUID clusterId) {
        var dsl = Jooq.using(connection);
        dsl.execute(schema.sql("UPDATE eventsql.outbox_relay SET cluster_id = ? WHERE cluster_id IS NULL"), clusterId);
        return dsl.fetchSingle(schema.sql("SELECT cluster_id FROM eventsql.outbox_relay"))
                .get(0, UUID.class);
    }

    /** The cluster and number of the shard that this database is; empty if it is none. Also where there is no such table. */
    public Optional<ShardIdentity> shardIdentity(Connection connection) {
        boolean mayBeShard = Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue("SELECT to_regclass(?) IS NOT NULL", schema.sql("eventsql.shard")));
        return mayBeShard ? new ShardTable(schema).find(connection) : Optional.empty();
    }
}
