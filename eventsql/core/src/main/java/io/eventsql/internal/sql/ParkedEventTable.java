package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jooq.Record;
import org.jspecify.annotations.Nullable;

/**
 * {@code parked_event} and {@code parked_key}: what consumers could not handle. Statements go by primary key, or by the
 * partial indexes on what is to be redriven and on a key's parked events. All run in the caller's transaction, which a
 * fenced offset commit ends: only the partition's holder changes what is parked.
 */
public final class ParkedEventTable {
    private final SqlSchema schema;
    private final String insert;

    public ParkedEventTable(SqlSchema schema) {
        this.schema = schema;
        insert = schema.sql("INSERT INTO eventsql.parked_event (consumer_id, partition, event_offset, key, value,"
                + " headers, published_at, dead_letter_stream, dead_letter_offset, error, attempts)"
                + " VALUES (?, ?, ?, ?, ?, ?::json, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    }

    /**
     * One row.
     *
     * @param deadLetterStream {@code null}: parked
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the event as it is
    public record Row(
            int partition,
            long offset,
            @Nullable String key,
            byte[] value,
            Map<String, String> headers,
            Instant publishedAt,
            @Nullable String deadLetterStream,
            @Nullable Long deadLetterOffset,
            String error,
            int attempts,
            Instant parkedAt,
            boolean redriving) {}

    /** Whether an event is set aside already. */
    public boolean isParkedEvent(Connection connection, int consumerId, int partition, long offset) {
        return !Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT FROM eventsql.parked_event"
                                + " WHERE consumer_id = ? AND partition = ? AND event_offset = ?"),
                        consumerId,
                        partition,
                        offset)
                .isEmpty();
    }

    /** Sets one event aside as dead-lettered: its copy is in the dead-letter stream. */
    public void addDeadLetter(
            Connection connection,
            int consumerId,
            StoredEvent event,
            EventPosition deadLetter,
            String error,
            int attempts)
            throws SQLException {
        insert(connection, consumerId, List.of(event), deadLetter, error, attempts);
    }

    /** Sets events of parked keys aside. */
    public void park(Connection connection, int consumerId, List<StoredEvent> events, String error, int attempts)
            throws SQLException {
        insert(connection, consumerId, events, null, error, attempts);
    }

    private void insert(
            Connection connection,
            int consumerId,
            List<StoredEvent> events,
            @Nullable EventPosition deadLetter,
            String error,
            int attempts)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (StoredEvent event : events) {
                statement.setInt(1, consumerId);
                statement.setInt(2, event.partition());
                statement.setLong(3, event.offset());
                statement.setString(4, event.key());
                statement.setBytes(5, event.value());
                statement.setString(6, event.headers().isEmpty() ? null : HeadersJson.encode(event.headers()));
                statement.setObject(7, OffsetDateTime.ofInstant(event.publishedAt(), ZoneOffset.UTC));
                statement.setString(8, deadLetter == null ? null : deadLetter.stream());
                statement.setObject(9, deadLetter == null ? null : deadLetter.offset(), Types.BIGINT);
                statement.setString(10, error.replace('\0', ' '));
                statement.setInt(11, attempts);
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    /** From now on the key's events are parked. */
    public void parkKey(Connection connection, int consumerId, int partition, String key) {
        Jooq.using(connection)
                .execute(
                        schema.sql("INSERT INTO eventsql.parked_key (consumer_id, partition, key) VALUES (?, ?, ?)"
                                + " ON CONFLICT DO NOTHING"),
                        consumerId,
                        partition,
                        key);
    }

    /** The parked keys of some partitions. */
    public Map<Integer, Set<String>> parkedKeys(Connection connection, int consumerId, Collection<Integer> partitions) {
        Map<Integer, Set<String>> keys = new HashMap<>();
        for (Record row : Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT partition, key FROM eventsql.parked_key"
                                + " WHERE consumer_id = ? AND partition = ANY (?::int[])"),
                        consumerId,
                        partitions.toArray(Integer[]::new))) {
            keys.computeIfAbsent(row.get(0, Integer.class), p -> new HashSet<>())
                    .add(row.get(1, String.class));
        }
        return keys;
    }

    /** The next events of a partition to be handled again, in order. */
    public List<Row> toRedrive(Connection connection, int consumerId, int partition, int max) throws SQLException {
        return rows(
                connection,
                "WHERE e.consumer_id = ? AND e.partition = ? AND (e.redrive OR e.dead_letter_offset IS NULL AND"
                        + " EXISTS (SELECT FROM eventsql.parked_key k WHERE k.consumer_id = e.consumer_id"
                        + " AND k.partition = e.partition AND k.key = e.key AND k.redrive))"
                        + " ORDER BY e.event_offset LIMIT ?",
                consumerId,
                partition,
                max);
    }

    /** What a consumer has set aside on this shard, by partition and offset. */
    public List<Row> list(Connection connection, int consumerId, int max) throws SQLException {
        return rows(
                connection, "WHERE e.consumer_id = ? ORDER BY e.partition, e.event_offset LIMIT ?", consumerId, max);
    }

    private List<Row> rows(Connection connection, String where, Object... parameters) throws SQLException {
        return Jooq.using(connection)
                .fetch(
                        schema.sql(
                                "SELECT e.partition, e.event_offset, e.key, e.value, e.headers::text, e.published_at,"
                                        + " e.dead_letter_stream, e.dead_letter_offset, e.error, e.attempts, e.parked_at,"
                                        + " e.redrive OR EXISTS (SELECT FROM eventsql.parked_key r WHERE e.dead_letter_offset"
                                        + " IS NULL AND r.consumer_id = e.consumer_id AND r.partition = e.partition"
                                        + " AND r.key = e.key AND r.redrive)"
                                        + " FROM eventsql.parked_event e " + where),
                        parameters)
                .map(r -> new Row(
                        r.get(0, Integer.class),
                        r.get(1, Long.class),
                        r.get(2, String.class),
                        r.get(3, byte[].class),
                        headers(r.get(4, String.class)),
                        r.get(5, OffsetDateTime.class).toInstant(),
                        r.get(6, String.class),
                        r.get(7, Long.class),
                        r.get(8, String.class),
                        r.get(9, Integer.class),
                        r.get(10, OffsetDateTime.class).toInstant(),
                        r.get(11, Boolean.class)));
    }

    private static Map<String, String> headers(@Nullable String json) {
        return json == null ? Map.of() : HeadersJson.decode(json);
    }

    /** The event was handled: it is no longer set aside. Returns whether it still was. */
    public boolean remove(Connection connection, int consumerId, int partition, long offset) {
        return Jooq.using(connection)
                        .execute(
                                schema.sql("DELETE FROM eventsql.parked_event"
                                        + " WHERE consumer_id = ? AND partition = ? AND event_offset = ?"),
                                consumerId,
                                partition,
                                offset)
                == 1;
    }

    /** Keys that are to be handled again and have no parked event any more: they are no longer parked. */
    public List<String> freeKeys(Connection connection, int consumerId, int partition) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql("DELETE FROM eventsql.parked_key k"
                                + " WHERE k.consumer_id = ? AND k.partition = ? AND k.redrive"
                                + " AND NOT EXISTS (SELECT FROM eventsql.parked_event e"
                                + " WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition"
                                + " AND e.key = k.key AND e.dead_letter_offset IS NULL) RETURNING k.key"),
                        consumerId,
                        partition)
                .getValues(0, String.class);
    }

    /** The event failed again: it stays, and with a parked one its key. */
    public void failedAgain(Connection connection, int consumerId, int partition, Row row, String error, int attempts) {
        var dsl = Jooq.using(connection);
        dsl.execute(
                schema.sql("UPDATE eventsql.parked_event SET redrive = false, error = ?, attempts = attempts + ?"
                        + " WHERE consumer_id = ? AND partition = ? AND event_offset = ?"),
                error.replace('\0', ' '),
                attempts,
                consumerId,
                partition,
                row.offset());
        if (row.deadLetterOffset() == null) {
            dsl.execute(
                    schema.sql("UPDATE eventsql.parked_key SET redrive = false"
                            + " WHERE consumer_id = ? AND partition = ? AND key = ?"),
                    consumerId,
                    partition,
                    row.key());
        }
    }

    /**
     * Asks for events to be handled again.
     *
     * @param offsets {@code null}: all of the consumer on this shard
     * @return how many events
     */
    public int askRedrive(Connection connection, int consumerId, int partition, long @Nullable [] offsets) {
        var dsl = Jooq.using(connection);
        Long[] which = offsets == null ? null : Arrays.stream(offsets).boxed().toArray(Long[]::new);
        dsl.execute(
                schema.sql("UPDATE eventsql.parked_key k SET redrive = true WHERE k.consumer_id = ? AND k.partition = ?"
                        + " AND (?::bigint[] IS NULL OR EXISTS (SELECT FROM eventsql.parked_event e"
                        + " WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition AND e.key = k.key"
                        + " AND e.dead_letter_offset IS NULL AND e.event_offset = ANY (?::bigint[])))"),
                consumerId,
                partition,
                which,
                which);
        dsl.execute(
                schema.sql("UPDATE eventsql.parked_event SET redrive = true WHERE consumer_id = ? AND partition = ?"
                        + " AND dead_letter_offset IS NOT NULL"
                        + " AND (?::bigint[] IS NULL OR event_offset = ANY (?::bigint[]))"),
                consumerId,
                partition,
                which,
                which);
        return Jooq.using(connection)
                .fetchSingle(
                        schema.sql("SELECT count(*) FROM eventsql.parked_event e"
                                + " WHERE e.consumer_id = ? AND e.partition = ? AND (e.redrive"
                                + " OR e.dead_letter_offset IS NULL AND EXISTS (SELECT FROM eventsql.parked_key k"
                                + " WHERE k.consumer_id = e.consumer_id AND k.partition = e.partition"
                                + " AND k.key = e.key AND k.redrive))"),
                        consumerId,
                        partition)
                .get(0, Integer.class);
    }

    /**
     * Forgets events. A key without any is freed by the partition's holder, as if it had been redriven.
     *
     * @return how many there were
     */
    public int drop(Connection connection, int consumerId, int partition, long[] offsets) {
        var dsl = Jooq.using(connection);
        List<String> keys = dsl.fetch(
                        schema.sql("DELETE FROM eventsql.parked_event WHERE consumer_id = ? AND partition = ?"
                                + " AND event_offset = ANY (?::bigint[])"
                                + " RETURNING CASE WHEN dead_letter_offset IS NULL THEN key END"),
                        consumerId,
                        partition,
                        Arrays.stream(offsets).boxed().toArray(Long[]::new))
                .getValues(0, String.class);
        for (String key : new HashSet<>(keys)) {
            if (key != null) {
                dsl.execute(
                        schema.sql("UPDATE eventsql.parked_key k SET redrive = true"
                                + " WHERE k.consumer_id = ? AND k.partition = ? AND k.key = ?"
                                + " AND NOT EXISTS (SELECT FROM eventsql.parked_event e"
                                + " WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition"
                                + " AND e.key = k.key AND e.dead_letter_offset IS NULL)"),
                        consumerId,
                        partition,
                        key);
            }
        }
        return keys.size();
    }
}
