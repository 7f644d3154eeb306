package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * {@code outbox} and {@code outbox_ring}: the ring of tables that a transactional publish writes to, in the caller's
 * transaction. {@link RelayTable} takes the events out again.
 */
public final class OutboxTable {
    // Locks nothing but the new row and, as every INSERT, its table (ROW EXCLUSIVE). Reads the sequence's last value.
    private static final String INSERT_ONE = """
            INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)
            SELECT r.last_value, ?, ?, ?, ?::json, ?
            FROM eventsql.outbox_ring r""";

    // As above. Ids rise in the order of the arrays, because nextval is called for each row after the sort.
    private static final String INSERT_ALL = """
            INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)
            SELECT (SELECT last_value FROM eventsql.outbox_ring), ?, e.key, e.value, e.headers::json, ?
            FROM unnest(?, ?, ?) WITH ORDINALITY AS e (key, value, headers, ordinal)
            ORDER BY e.ordinal""";

    // Counts up to a limit; the oldest events are the first entries of the primary keys. Takes no row lock.
    private static final String BACKLOG = """
            SELECT (SELECT count(*) FROM (SELECT FROM eventsql.outbox LIMIT ?) o)::int
                       + (SELECT count(*) FROM (SELECT FROM eventsql.outbox_transfer LIMIT ?) t)::int AS events,
                   (SELECT count(*) FROM (SELECT FROM eventsql.outbox_refused LIMIT ?) r)::int AS refused,
                   coalesce(extract(epoch FROM clock_timestamp() - least(
                       (SELECT written_at FROM eventsql.outbox ORDER BY id LIMIT 1),
                       (SELECT min(first.written_at)
                        FROM unnest(?::int[]) AS s (number), LATERAL (
                            SELECT t.written_at FROM eventsql.outbox_transfer t
                            WHERE t.shard = s.number
                            ORDER BY t.number LIMIT 1) first))) * 1000, 0)::bigint AS oldest""";

    // Reads the size of the files. Locks the tables in ACCESS SHARE mode for a moment.
    private static final String TABLE_SIZES = """
            SELECT t.ring, pg_relation_size(t.name::regclass) AS bytes, t.ring = r.last_value AS current
            FROM eventsql.outbox_ring r, (VALUES
                (0, 'eventsql.outbox_0'),
                (1, 'eventsql.outbox_1'),
                (2, 'eventsql.outbox_2'),
                (3, 'eventsql.outbox_3'),
                (-1, 'eventsql.outbox_transfer')) AS t (ring, name)""";

    // Catalog lookups. NULL if there is no such table: the database is no shard, or has the tables of an earlier
    // release.
    private static final String MAY_READ_STREAMS = """
            SELECT bool_and(has_table_privilege(to_regclass('eventsql.' || t.name), 'SELECT'))
               AND count(to_regclass('eventsql.' || t.name)) = count(*)
            FROM unnest(ARRAY['stream', 'shard', 'stream_partition', 'stream_map', 'stream_placement', 'stationary_stream'])
                AS t (name)""";

    private final SqlSchema schema;
    private final String insertOne;
    private final String insertAll;

    public OutboxTable(SqlSchema schema) {
        this.schema = schema;
        insertOne = schema.sql(INSERT_ONE);
        insertAll = schema.sql(INSERT_ALL);
    }

    /**
     * An event that was published inside a transaction.
     *
     * @param id rises with each event; one that becomes visible later may have a lower one
     * @param value {@code null}: a tombstone
     * @param headers a JSON object or {@code null}
     * @param routingHash routes an event without a key
     * @param writtenAt when it was published, by the database's clock
     */
    @SuppressWarnings("ArrayRecordComponent") // goes from the driver to the driver as it is
    public record Row(
            long id,
            String stream,
            @Nullable String key,
            byte @Nullable [] value,
            @Nullable String headers,
            int routingHash,
            OffsetDateTime writtenAt) {}

    /**
     * Returns whether the connection's database is a shard, and its role may read the streams there ({@link StreamTable#find}).
     * Executed in the caller's transaction, which it does not make fail.
     */
    public boolean mayReadStreams(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.sql(MAY_READ_STREAMS));
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getBoolean(1);
        }
    }

    /** Writes one event in the caller's transaction. */
    public void insert(
            Connection connection,
            String stream,
            @Nullable String key,
            byte @Nullable [] value,
            @Nullable String headers,
            int routingHash)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insertOne)) {
            statement.setString(1, stream);
            statement.setString(2, key);
            statement.setBytes(3, value);
            statement.setString(4, headers);
            statement.setInt(5, routingHash);
            statement.executeUpdate();
        }
    }

    /** Writes events in the caller's transaction; the relay takes them in the order of the arrays. */
    public void insertAll(
            Connection connection,
            String stream,
            @Nullable String[] keys,
            byte[] @Nullable [] values,
            @Nullable String[] headers,
            int routingHash)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insertAll)) {
            statement.setString(1, stream);
            statement.setInt(2, routingHash);
            statement.setArray(3, connection.createArrayOf("text", keys));
            statement.setArray(4, connection.createArrayOf("bytea", values));
            statement.setArray(5, connection.createArrayOf("text", headers));
            statement.executeUpdate();
        }
    }

    /**
     * The events waiting in the outbox, including those on their way to other databases.
     *
     * @param events their number, counted up to the limit
     * @param refused the number of refused events, counted up to the limit
     * @param oldestMillis the age of the oldest waiting event; 0 if there is none
     */
    public record Backlog(int events, int refused, long oldestMillis) {}

    /**
     * Reads the backlog in one snapshot, at a bounded cost.
     *
     * @param limit the number up to which events are counted
     * @param shards the shards that events may be on their way to
     */
    public Backlog backlog(Connection connection, int limit, List<Integer> shards) {
        return Jooq.using(connection)
                .fetchSingle(schema.sql(BACKLOG), limit, limit, limit, shards.toArray(Integer[]::new))
                .map(r -> new Backlog(
                        Math.min(r.get("events", Integer.class), limit),
                        r.get("refused", Integer.class),
                        Math.max(r.get("oldest", Long.class), 0)));
    }

    /**
     * The size of a table that events pass through.
     *
     * @param ring its number in the ring; {@value #TRANSFER}: {@code outbox_transfer}
     * @param bytes its size without values stored out of line
     * @param current whether new events are written to it
     */
    public record TableSize(int ring, long bytes, boolean current) {
        private static final int TRANSFER = -1;

        /** Returns whether this is {@code outbox_transfer}. */
        public boolean isTransfer() {
            return ring == TRANSFER;
        }
    }

    /** Returns the sizes of the tables of the ring, then that of the transfer table. */
    public List<TableSize> tableSizes(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql(TABLE_SIZES))
                .map(r -> new TableSize(
                        r.get("ring", Integer.class), r.get("bytes", Long.class), r.get("current", Boolean.class)));
    }

    /** Makes a table the current one. Statements that have started already may still write to the former one. */
    public void rotate(Connection connection, int ring) {
        Jooq.using(connection).fetch(schema.sql("SELECT setval('eventsql.outbox_ring', ?)"), ring);
    }

    /**
     * Reclaims the space of a table of the ring, in the caller's transaction, unless the table holds an event. Checks
     * that after it has locked the table (ACCESS EXCLUSIVE), in a new statement, which sees everything committed
     * before.
     *
     * @return whether it was empty
     * @throws SQLException {@link SqlErrors#LOCK_NOT_AVAILABLE} if a transaction that wrote to the table, or a reader,
     *     has not ended: the lock is never waited for
     */
    public boolean truncateIfEmpty(Connection connection, int ring) throws SQLException {
        return truncateIfEmpty(connection, schema.sql("eventsql.outbox_" + ring));
    }

    /** As {@link #truncateIfEmpty(Connection, int)}, for any table. */
    static boolean truncateIfEmpty(Connection connection, String table) throws SQLException {
        var dsl = Jooq.using(connection);
        dsl.execute("LOCK TABLE ONLY " + table + " IN ACCESS EXCLUSIVE MODE NOWAIT");
        boolean empty = Objects.requireNonNull(dsl.fetchValue("SELECT NOT EXISTS (SELECT FROM ONLY " + table + ")"))
                .equals(true);
        if (empty) {
            dsl.execute("TRUNCATE ONLY " + table);
        }
        return empty;
    }
}
