package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code outbox_transfer}: events on their way from the outbox to other databases, until those have stored them; and those for the
 * outbox's own one that must wait there. Only the relay writes to it, under the lock of its row.
 */
public final class TransferTable {
    // Numbers rise in the order of the arrays, because nextval is called for each row after the sort. Conflicts with
    // nothing.
    private static final String INSERT = """
            INSERT INTO eventsql.outbox_transfer
                (shard, producer_id, stream, partition, key, value, headers, written_at)
            SELECT e.shard, ?, e.stream, e.partition, e.key, e.value, e.headers::json, e.written_at
            FROM unnest(?, ?, ?, ?, ?, ?, ?) WITH ORDINALITY
                AS e (shard, stream, partition, key, value, headers, written_at, ordinal)
            ORDER BY e.ordinal""";

    // Index: the primary key (shard, number), in its order. Takes no row lock.
    private static final String PAGE = """
            SELECT number, producer_id, stream, partition, key, value, headers::text, written_at,
                   erased_at IS NOT NULL AND value IS NOT NULL AS erased
            FROM (
                SELECT *, sum(coalesce(octet_length(value), 0)) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING)
                              - coalesce(octet_length(value), 0) AS bytes_before
                FROM (
                    SELECT * FROM eventsql.outbox_transfer
                    WHERE shard = ? AND number > ? AND stream <> ALL (?)
                    ORDER BY number
                    LIMIT ?) e) counted
            WHERE bytes_before < ?
            ORDER BY number""";

    // Index: the primary key. Locks the deleted rows.
    private static final String DELETE = """
            DELETE FROM eventsql.outbox_transfer
            WHERE shard = ? AND number > ? AND number <= ? AND stream <> ALL (?)""";

    // Indexes: the primary key, and outbox_transfer_key_hash for each key and addressed shard. Takes no row lock.
    private static final String SHARDS_OF_KEYS = """
            SELECT stream, key, shard FROM eventsql.transfer_shards_v1(?::text[], ?::text[])""";

    // Index: the primary key. Locks the deleted rows; the relay's row is locked. Numbers rise in the former order, and
    // belong to the outbox's current producer: a shard may have stored greater ones of a former producer.
    private static final String READDRESS = """
            WITH gone AS (
                DELETE FROM eventsql.outbox_transfer t
                USING unnest(?::bigint[], ?::int[]) AS e (number, next_shard)
                WHERE t.shard = ? AND t.number = e.number
                RETURNING t.*, e.next_shard)
            INSERT INTO eventsql.outbox_transfer
                (shard, producer_id, stream, partition, key, value, headers, written_at, erased_at)
            SELECT g.next_shard, r.producer_id, g.stream, g.partition, g.key, g.value, g.headers, g.written_at, g.erased_at
            FROM gone g CROSS JOIN eventsql.outbox_relay r
            ORDER BY g.number""";

    // Index: the primary key, one entry for each shard. Takes no row lock.
    private static final String SHARDS_WITH_EVENTS = """
            SELECT s.number
            FROM unnest(?::int[]) AS s (number)
            WHERE EXISTS (SELECT FROM eventsql.outbox_transfer t WHERE t.shard = s.number)""";

    private final SqlSchema schema;
    private final String insert;
    private final String page;
    private final String delete;

    public TransferTable(SqlSchema schema) {
        this.schema = schema;
        insert = schema.sql(INSERT);
        page = schema.sql(PAGE);
        delete = schema.sql(DELETE);
    }

    /** An event with its target shard and partition. */
    public record Addressed(int shard, int partition, OutboxTable.Row event) {}

    /**
     * An event on its way to another database.
     *
     * @param number rises with each event of an outbox
     * @param producer the producer that the number belongs to
     * @param value {@code null}: a tombstone
     * @param isErased whether its value was erased; the number is still sent, so that an older copy of it is rejected
     */
    @SuppressWarnings("ArrayRecordComponent") // goes from the driver to the driver as it is
    public record Row(
            long number,
            UUID producer,
            String stream,
            int partition,
            @Nullable String key,
            byte @Nullable [] value,
            @Nullable String headers,
            OffsetDateTime writtenAt,
            boolean isErased) {}

    /** Inserts events, numbered in the order of the list, in the caller's transaction, which holds the relay's lock. */
    public void insert(Connection connection, UUID producer, List<Addressed> events) throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setObject(1, producer);
            statement.setArray(
                    2,
                    pg.createArrayOf(
                            "int4", events.stream().mapToInt(Addressed::shard).toArray()));
            statement.setArray(
                    3,
                    pg.createArrayOf(
                            "text", events.stream().map(e -> e.event().stream()).toArray(String[]::new)));
            statement.setArray(
                    4,
                    pg.createArrayOf(
                            "int4",
                            events.stream().mapToInt(Addressed::partition).toArray()));
            statement.setArray(
                    5,
                    pg.createArrayOf(
                            "text", events.stream().map(e -> e.event().key()).toArray(String[]::new)));
            statement.setArray(
                    6,
                    pg.createArrayOf(
                            "bytea", events.stream().map(e -> e.event().value()).toArray(byte[][]::new)));
            statement.setArray(
                    7,
                    pg.createArrayOf(
                            "text",
                            events.stream().map(e -> e.event().headers()).toArray(String[]::new)));
            statement.setArray(
                    8,
                    pg.createArrayOf(
                            "timestamptz",
                            events.stream().map(e -> e.event().writtenAt()).toArray(OffsetDateTime[]::new)));
            statement.executeUpdate();
        }
    }

    /**
     * Returns the next events of a shard after a number, in order.
     *
     * @param without the streams whose events are left out
     */
    public List<Row> page(
            Connection connection, int shard, long after, int maxEvents, long maxBytes, Collection<String> without)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(page)) {
            statement.setInt(1, shard);
            statement.setLong(2, after);
            statement.setArray(3, connection.createArrayOf("text", without.toArray(String[]::new)));
            statement.setInt(4, maxEvents);
            statement.setLong(5, maxBytes);
            List<Row> rows = new ArrayList<>();
            try (ResultSet result = statement.executeQuery()) {
                while (result.next()) {
                    rows.add(new Row(
                            result.getLong(1),
                            result.getObject(2, UUID.class),
                            result.getString(3),
                            result.getInt(4),
                            result.getString(5),
                            result.getBytes(6),
                            result.getString(7),
                            result.getObject(8, OffsetDateTime.class),
                            result.getBoolean(9)));
                }
            }
            return rows;
        }
    }

    /**
     * Deletes a shard's events with numbers above {@code after} and up to {@code upTo}, in the caller's transaction.
     *
     * @param without the streams whose events are left out
     */
    public void delete(Connection connection, int shard, long after, long upTo, Collection<String> without)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(delete)) {
            statement.setInt(1, shard);
            statement.setLong(2, after);
            statement.setLong(3, upTo);
            statement.setArray(4, connection.createArrayOf("text", without.toArray(String[]::new)));
            statement.executeUpdate();
        }
    }

    /** A key of a stream. */
    public record StreamKey(String stream, String key) {}

    /** Returns the shards that events of these keys are on their way to. */
    public Map<StreamKey, Set<Integer>> shardsOfKeys(Connection connection, Collection<StreamKey> keys) {
        Map<StreamKey, Set<Integer>> shards = new HashMap<>();
        String[] streams = keys.stream().map(StreamKey::stream).toArray(String[]::new);
        String[] names = keys.stream().map(StreamKey::key).toArray(String[]::new);
        Jooq.using(connection)
                .fetch(schema.sql(SHARDS_OF_KEYS), streams, names)
                .forEach(r -> shards.computeIfAbsent(
                                new StreamKey(r.get(0, String.class), r.get(1, String.class)), key -> new HashSet<>())
                        .add(r.get(2, Integer.class)));
        return shards;
    }

    /**
     * Addresses events on their way to a shard, which does not have them, to other shards, in the caller's transaction, which holds
     * the relay's lock. They get new numbers, in their order.
     *
     * @param shards the new shard of each number
     */
    public void readdress(Connection connection, int shard, List<Long> numbers, List<Integer> shards) {
        Jooq.using(connection)
                .execute(schema.sql(READDRESS), numbers.toArray(Long[]::new), shards.toArray(Integer[]::new), shard);
    }

    /**
     * Reclaims the table's space in the caller's transaction, which holds the relay's lock. A concurrent reader may see
     * the table empty, and must read again afterwards.
     *
     * @return {@code false} if the table holds too many events
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#LOCK_NOT_AVAILABLE} if another transaction
     *     uses the table: the lock is never waited for
     */
    public boolean compact(Connection connection, int maxEvents, long maxBytes) {
        return Boolean.TRUE.equals(Jooq.using(connection)
                .fetchValue(schema.sql("SELECT eventsql.compact_transfer_v1(?, ?)"), maxEvents, maxBytes));
    }

    /** Returns those of the shards that have events on their way. */
    public List<Integer> shardsWithEvents(Connection connection, List<Integer> shards) {
        return Jooq.using(connection)
                .fetch(schema.sql(SHARDS_WITH_EVENTS), (Object) shards.toArray(Integer[]::new))
                .map(r -> r.get(0, Integer.class));
    }
}
