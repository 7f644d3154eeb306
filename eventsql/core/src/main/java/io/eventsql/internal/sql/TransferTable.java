package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code outbox_transfer}: events taken out of the outbox for other databases, until those have them. Only the relay
 * writes to it, under the lock of its row. Index of all statements: the primary key (shard, number).
 */
public final class TransferTable {
    private final SqlSchema schema;
    private final String insert;
    private final String page;
    private final String delete;

    public TransferTable(SqlSchema schema) {
        this.schema = schema;
        insert = schema.sql("INSERT INTO eventsql.outbox_transfer"
                + " (shard, producer_id, stream, partition, key, value, headers, written_at)"
                + " SELECT e.d, ?, e.s, e.p, e.k, e.v, e.h::json, e.w"
                + " FROM unnest(?, ?, ?, ?, ?, ?, ?) WITH ORDINALITY AS e (d, s, p, k, v, h, w, n) ORDER BY e.n");
        page = schema.sql("SELECT number, producer_id, stream, partition, key, value, headers::text, written_at"
                + " FROM (SELECT *, sum(octet_length(value)) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING)"
                + " - octet_length(value) AS bytes_before"
                + " FROM (SELECT * FROM eventsql.outbox_transfer WHERE shard = ? AND number > ?"
                + " ORDER BY number LIMIT ?) e) counted"
                + " WHERE bytes_before < ? ORDER BY number");
        delete = schema.sql("DELETE FROM eventsql.outbox_transfer WHERE shard = ? AND number > ? AND number <= ?");
    }

    /** An event and the place it goes to. */
    public record Addressed(int shard, int partition, OutboxTable.Row event) {}

    /**
     * An event on its way.
     *
     * @param number rises with each event of an outbox
     * @param producer whose number it is
     */
    @SuppressWarnings("ArrayRecordComponent") // goes from the driver to the driver as it is
    public record Row(
            long number,
            UUID producer,
            String stream,
            int partition,
            @Nullable String key,
            byte[] value,
            @Nullable String headers,
            OffsetDateTime writtenAt) {}

    /** Adds events in the caller's transaction, which holds the relay's lock, numbered in the order of the list. */
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

    /** The next events of a shard behind a number, in their order. */
    public List<Row> page(Connection connection, int shard, long after, int maxEvents, long maxBytes)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(page)) {
            statement.setInt(1, shard);
            statement.setLong(2, after);
            statement.setInt(3, maxEvents);
            statement.setLong(4, maxBytes);
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
                            result.getObject(8, OffsetDateTime.class)));
                }
            }
            return rows;
        }
    }

    /** Removes a shard's events with numbers above the first and up to the second, in the caller's transaction. */
    public void delete(Connection connection, int shard, long after, long upTo) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(delete)) {
            statement.setInt(1, shard);
            statement.setLong(2, after);
            statement.setLong(3, upTo);
            statement.executeUpdate();
        }
    }

    /**
     * Gives back the table's space in the caller's transaction, which holds the relay's lock. Who reads meanwhile may see
     * it empty, and must look again afterwards.
     *
     * @return false if there is too much in it
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#LOCK_NOT_AVAILABLE} if somebody reads it: never
     *     waits
     */
    public boolean compact(Connection connection, int maxEvents, long maxBytes) {
        return Boolean.TRUE.equals(Jooq.using(connection)
                .fetchValue(schema.sql("SELECT eventsql.compact_transfer_v1(?, ?)"), maxEvents, maxBytes));
    }

    /** Which of the shards have events on their way. */
    public List<Integer> shardsWithEvents(Connection connection, List<Integer> shards) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT s.number FROM unnest(?::int[]) AS s (number)"
                                + " WHERE EXISTS (SELECT FROM eventsql.outbox_transfer t WHERE t.shard = s.number)"),
                        (Object) shards.toArray(Integer[]::new))
                .map(r -> r.get(0, Integer.class));
    }
}
