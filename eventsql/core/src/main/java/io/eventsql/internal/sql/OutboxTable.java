package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * {@code outbox} and {@code outbox_ring}: the ring of tables that a transactional publish writes to, in the caller's
 * transaction. What takes the events out again is in {@link RelayTable}.
 */
public final class OutboxTable {
    private final SqlSchema schema;
    private final String insertOne;
    private final String insertAll;

    public OutboxTable(SqlSchema schema) {
        this.schema = schema;
        // Reads the last value of outbox_ring; locks nothing but the new rows and, as every INSERT, their table (ROW
        // EXCLUSIVE).
        insertOne = schema.sql("INSERT INTO eventsql.outbox (ring, stream, key, value, headers, spread)"
                + " SELECT r.last_value, ?, ?, ?, ?::json, ? FROM eventsql.outbox_ring r");
        // Ids rise in the order of the arrays: nextval is called for each row behind the sort.
        insertAll = schema.sql("INSERT INTO eventsql.outbox (ring, stream, key, value, headers, spread)"
                + " SELECT (SELECT last_value FROM eventsql.outbox_ring), ?, e.k, e.v, e.h::json, ?"
                + " FROM unnest(?, ?, ?) WITH ORDINALITY AS e (k, v, h, n) ORDER BY e.n");
    }

    /**
     * An event that was published inside a transaction.
     *
     * @param id rises with each event; one that becomes visible later may have a lower one
     * @param headers a JSON object or {@code null}
     * @param spread for an event without a key: decides where it goes
     * @param writtenAt when it was published, by the database's clock
     */
    @SuppressWarnings("ArrayRecordComponent") // goes from the driver to the driver as it is
    public record Row(
            long id,
            String stream,
            @Nullable String key,
            byte[] value,
            @Nullable String headers,
            int spread,
            OffsetDateTime writtenAt) {}

    /** Writes one event in the caller's transaction. */
    public void insert(
            Connection connection,
            String stream,
            @Nullable String key,
            byte[] value,
            @Nullable String headers,
            int spread)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insertOne)) {
            statement.setString(1, stream);
            statement.setString(2, key);
            statement.setBytes(3, value);
            statement.setString(4, headers);
            statement.setInt(5, spread);
            statement.executeUpdate();
        }
    }

    /** Writes events in the caller's transaction; the relay takes them in the order of the arrays. */
    public void insertAll(
            Connection connection,
            String stream,
            @Nullable String[] keys,
            byte[][] values,
            @Nullable String[] headers,
            int spread)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insertAll)) {
            statement.setString(1, stream);
            statement.setInt(2, spread);
            statement.setArray(3, connection.createArrayOf("text", keys));
            statement.setArray(4, connection.createArrayOf("bytea", values));
            statement.setArray(5, connection.createArrayOf("text", headers));
            statement.executeUpdate();
        }
    }

    /**
     * What waits in the outbox and on its way to other databases.
     *
     * @param events how many, counted up to the limit
     * @param refused how many were refused, counted up to the limit
     * @param oldestMillis how long ago the oldest one that waits was published; 0 if none waits
     */
    public record Backlog(int events, int refused, long oldestMillis) {}

    /**
     * Looks what waits, in one snapshot. Counts no further than the limit, and the oldest of each part is the first entry
     * of a primary key, so the cost is bounded.
     *
     * @param shards the shards that events may be on their way to
     */
    public Backlog backlog(Connection connection, int limit, List<Integer> shards) {
        return Jooq.using(connection)
                .fetchSingle(
                        schema.sql("SELECT (SELECT count(*) FROM (SELECT FROM eventsql.outbox LIMIT ?) o)::int"
                                + " + (SELECT count(*) FROM (SELECT FROM eventsql.outbox_transfer LIMIT ?) t)::int AS events,"
                                + " (SELECT count(*) FROM (SELECT FROM eventsql.outbox_refused LIMIT ?) r)::int AS refused,"
                                + " coalesce(extract(epoch FROM clock_timestamp() - least("
                                + "(SELECT written_at FROM eventsql.outbox ORDER BY id LIMIT 1),"
                                + " (SELECT min(first.written_at) FROM unnest(?::int[]) AS s (number), LATERAL ("
                                + "SELECT t.written_at FROM eventsql.outbox_transfer t WHERE t.shard = s.number"
                                + " ORDER BY t.number LIMIT 1) first))) * 1000, 0)::bigint AS oldest"),
                        limit,
                        limit,
                        limit,
                        shards.toArray(Integer[]::new))
                .map(r -> new Backlog(
                        Math.min(r.get("events", Integer.class), limit),
                        r.get("refused", Integer.class),
                        Math.max(r.get("oldest", Long.class), 0)));
    }

    /**
     * A table that events go through and that can be emptied.
     *
     * @param ring its number in the ring; {@value #TRANSFER}: {@code outbox_transfer}
     * @param bytes its size without what is stored out of line
     * @param current whether new events go to it
     */
    public record Place(int ring, long bytes, boolean current) {
        private static final int TRANSFER = -1;

        /** Whether this is the table of the events on their way to other databases. */
        public boolean isTransfer() {
            return ring == TRANSFER;
        }
    }

    /** The tables of the ring, then the transfer table; reads only their sizes. */
    public List<Place> places(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql("SELECT p.ring, pg_relation_size(p.place::regclass) AS bytes,"
                        + " p.ring = r.last_value AS current FROM eventsql.outbox_ring r, (VALUES"
                        + " (0, 'eventsql.outbox_0'), (1, 'eventsql.outbox_1'), (2, 'eventsql.outbox_2'),"
                        + " (3, 'eventsql.outbox_3'), (-1, 'eventsql.outbox_transfer')) AS p (ring, place)"))
                .map(r -> new Place(
                        r.get("ring", Integer.class), r.get("bytes", Long.class), r.get("current", Boolean.class)));
    }

    /** From now on new events go to this table; those whose transaction began before may still go to the former one. */
    public void rotate(Connection connection, Place to) {
        Jooq.using(connection).fetch(schema.sql("SELECT setval('eventsql.outbox_ring', ?)"), to.ring());
    }

    /**
     * Gives the space of a table of the ring back, in the caller's transaction, unless it holds an event. Looks only once it has the table
     * for itself (ACCESS EXCLUSIVE), in a new statement: what was committed before that is seen.
     *
     * @return whether it was empty
     * @throws SQLException {@link SqlErrors#LOCK_NOT_AVAILABLE} if a transaction that wrote to it, or a reader, has not
     *     ended: never waits for it
     */
    public boolean truncateIfEmpty(Connection connection, Place place) throws SQLException {
        String table = schema.sql("eventsql.outbox_" + place.ring());
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
