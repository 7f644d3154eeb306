package io.eventsql.internal.sql;

import io.eventsql.internal.sql.OutboxTable.Row;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * {@code outbox_relay}: the lease of the relay, in one row, and the function that takes events out of the outbox. Every
 * transaction of the relay locks that row first, until it ends.
 */
public final class RelayTable {
    // Reads the relay's row and the first entry of each primary key of the ring. Locks the row only to update it.
    private static final String POLL = "SELECT held_epoch, waiting" + CommitWarnings.COLUMN
            + " FROM eventsql.relay_poll_v1(?, ?, make_interval(secs => ?), ?)";

    // Locks the relay's row.
    private static final String LOCK = "SELECT eventsql.relay_lock_v1(?, ?, ?)";

    // Locks the relay's row; index: the primary key of each table of the ring, in its order.
    private static final String TAKE = """
            SELECT producer_id, id, stream, key, value, headers, routing_hash, written_at
            FROM eventsql.relay_take_v1(?, ?, ?, ?, ?)""";

    // Locks the relay's row, if the lease is still the caller's.
    private static final String RELEASE = """
            UPDATE eventsql.outbox_relay
            SET holder = NULL, expires_at = '-infinity'
            WHERE holder = ? AND epoch = ?""";

    // Locks the relay's row, unless it belongs to a cluster already.
    private static final String CLAIM = """
            UPDATE eventsql.outbox_relay
            SET cluster_id = ?
            WHERE cluster_id IS NULL""";

    private final SqlSchema schema;
    private final String poll;
    private final String lock;
    private final String take;
    private final String channel;

    public RelayTable(SqlSchema schema) {
        this.schema = schema;
        this.channel = schema.name() + Notifications.OUTBOX;
        poll = schema.sql(POLL);
        lock = schema.sql(LOCK);
        take = schema.sql(TAKE);
    }

    /**
     * A lease of the relay.
     *
     * @param holder the process
     * @param epoch raised whenever another process acquires the lease: fences out former holders
     * @param timeoutMs how long a transaction may wait for its client
     */
    public record RelayLease(UUID holder, long epoch, int timeoutMs) {}

    /**
     * The result of a poll.
     *
     * @param epoch the epoch of the caller's lease; {@code null}: another process has the lease
     * @param waiting whether there are events to take; {@code false} without the lease
     */
    public record Polled(@Nullable Long epoch, boolean waiting) {}

    /**
     * Acquires the lease if it is free or expired, renews it if that is due, and checks whether events are waiting: one
     * statement, in most cases without a write.
     *
     * @param epoch the epoch of the lease that the caller believes to have; 0: none
     * @param notifyHolder whether to notify the holder if that is another process
     * @throws SQLException also if a warning leaves it in doubt whether the replicas have the lease
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
                SqlErrors.requireNoDoubt(statement.getWarnings());
                return polled;
            }
        }
    }

    /**
     * Locks the relay's row for the caller's transaction.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    public void lock(Connection connection, RelayLease lease) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(lock)) {
            setTenure(statement, lease);
            statement.execute();
        }
    }

    /**
     * A page of events taken out of the outbox.
     *
     * @param producer identifies this outbox to other databases; {@code null} in an empty page
     * @param rows in the order of their ids
     */
    public record Page(@Nullable UUID producer, List<Row> rows) {}

    /**
     * Deletes and returns the visible events with the lowest ids, under the lock of the relay's row.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    public Page take(Connection connection, RelayLease lease, int maxEvents, long maxBytes) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(take)) {
            setTenure(statement, lease);
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

    private static void setTenure(PreparedStatement statement, RelayLease lease) throws SQLException {
        statement.setObject(1, lease.holder());
        statement.setLong(2, lease.epoch());
        statement.setInt(3, lease.timeoutMs());
    }

    /** Releases the lease: the next process that polls acquires it. Does nothing if the lease has ended. */
    public void release(Connection connection, RelayLease lease) {
        Jooq.using(connection).execute(schema.sql(RELEASE), lease.holder(), lease.epoch());
    }

    /**
     * Claims the outbox for a cluster, unless it belongs to one already.
     *
     * @return the cluster that it belongs to
     */
    public UUID claim(Connection connection, UUID clusterId) {
        Optional<UUID> known = findClusterId(connection);
        if (known.isPresent()) { // the usual case, in which the role needs no right to relay
            return known.get();
        }
        Jooq.using(connection).execute(schema.sql(CLAIM), clusterId);
        return findClusterId(connection).orElseThrow();
    }

    private Optional<UUID> findClusterId(Connection connection) {
        return Optional.ofNullable(
                (UUID) Jooq.using(connection).fetchValue(schema.sql("SELECT cluster_id FROM eventsql.outbox_relay")));
    }

    /** Returns what identifies this outbox to other databases, whatever its producer. */
    public UUID outboxId(Connection connection) {
        return (UUID) Objects.requireNonNull(
                Jooq.using(connection).fetchValue(schema.sql("SELECT outbox_id FROM eventsql.outbox_relay")));
    }

    /** Returns the identity of this database as a shard; empty if it is not a shard. */
    public Optional<ShardIdentity> shardIdentity(Connection connection) {
        boolean mayBeShard = Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue("SELECT to_regclass(?) IS NOT NULL", schema.sql("eventsql.shard")));
        return mayBeShard ? new ShardTable(schema).find(connection) : Optional.empty();
    }
}
