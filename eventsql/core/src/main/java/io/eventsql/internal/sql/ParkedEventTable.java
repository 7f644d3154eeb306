package io.eventsql.internal.sql;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.ValueState;
import java.sql.BatchUpdateException;
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
 * {@code parked_event} and {@code parked_key}: the events that consumers could not handle. Every change runs in a
 * transaction that a fenced offset commit ends, so that only the partition's holder changes what is parked. Keys that have moved
 * between shards are parked before there is a holder: see {@link ShardBarrierTable#pass}.
 */
public final class ParkedEventTable {
    // Index: the primary key. Takes no row lock.
    private static final String IS_PARKED = """
            SELECT EXISTS (
                SELECT FROM eventsql.parked_event
                WHERE consumer_id = ? AND partition = ? AND event_offset = ?)""";

    // Index: the primary key, on which a concurrent insert of the same event waits.
    private static final String INSERT = """
            INSERT INTO eventsql.parked_event
                (consumer_id, partition, event_offset, key, value, headers, published_at, dead_letter_stream,
                 dead_letter_offset, error, attempts)
            VALUES (?, ?, ?, ?, ?, ?::json, ?, ?, ?, ?, ?)
            ON CONFLICT DO NOTHING""";

    // Index: the primary key, on which a concurrent insert of the same key waits.
    private static final String PARK_KEYS = """
            INSERT INTO eventsql.parked_key (consumer_id, partition, key)
            SELECT ?, ?, unnest(?::text[])
            ON CONFLICT DO NOTHING""";

    // Indexes: the primary keys. Locks the keys in the givers: what frees one there waits, and then finds it in the
    // receiver.
    private static final String PARK_OWN_KEYS = """
            WITH RECURSIVE own (partition, stream_id, consumer_id) AS (
                VALUES (?::int, ?::int, ?::int)
            ), giver AS (
                SELECT b.stream_id, b.giver FROM own o JOIN eventsql.partition_barrier b USING (stream_id, partition)
                UNION
                SELECT b.stream_id, b.giver
                FROM giver g JOIN eventsql.partition_barrier b ON b.stream_id = g.stream_id AND b.partition = g.giver
            ), candidate AS MATERIALIZED (
                SELECT k.key, eventsql.key_hash_v1(k.key) AS key_hash
                FROM own o
                CROSS JOIN unnest(?::text[], ?::int[], ?::int[]) AS k (key, slot, key_slot)
                WHERE k.slot IN (
                    SELECT u.slot - 1
                    FROM (
                        SELECT m.stream_id, m.slots FROM eventsql.stream_map m
                        UNION ALL
                        SELECT l.stream_id, l.slots FROM eventsql.stream_placement l) m
                    CROSS JOIN unnest(m.slots) WITH ORDINALITY AS u (partition, slot)
                    WHERE m.stream_id = o.stream_id AND u.partition = o.partition)
                OR k.key_slot IN (
                    SELECT u.slot - 1
                    FROM eventsql.stream_placement l CROSS JOIN unnest(l.moved) WITH ORDINALITY AS u (partition, slot)
                    WHERE l.stream_id = o.stream_id AND u.partition = o.partition)
            ), parked AS MATERIALIZED (
                SELECT p.key_hash
                FROM eventsql.parked_key p
                WHERE p.consumer_id = (SELECT o.consumer_id FROM own o)
                  AND p.partition IN (SELECT g.giver FROM giver g)
                  AND p.key_hash IN (SELECT c.key_hash FROM candidate c)
                ORDER BY p.partition, p.key_hash FOR KEY SHARE
            )
            INSERT INTO eventsql.parked_key (consumer_id, partition, key)
            SELECT o.consumer_id, o.partition, c.key
            FROM own o CROSS JOIN candidate c
            WHERE c.key_hash IN (SELECT p.key_hash FROM parked p)
            ON CONFLICT DO NOTHING""";

    // Indexes: the primary key and parked_event_of_key. Locks the rows that it inserts.
    private static final String FIND_PARKED_KEYS = "SELECT * FROM eventsql.parked_keys_v1(?, ?::int[])";

    // Index: the primary key, in its order. Takes no row lock.
    private static final String FIND_TO_REDRIVE = """
            SELECT e.partition, e.event_offset, e.key, e.value, e.headers::text, e.published_at, e.dead_letter_stream,
                   e.dead_letter_offset, e.error, e.attempts, e.parked_at, true, e.erased_at IS NOT NULL
            FROM eventsql.parked_event e
            WHERE e.consumer_id = ? AND e.partition = ?
              AND (e.redrive OR e.dead_letter_offset IS NULL AND EXISTS (
                  SELECT FROM eventsql.parked_key k
                  WHERE k.consumer_id = e.consumer_id AND k.partition = e.partition AND k.key_hash = e.key_hash
                    AND k.redrive) AND NOT eventsql.is_parked_before_v1(e.consumer_id, e.partition, e.key_hash))
            ORDER BY e.event_offset
            LIMIT ?""";

    // Indexes: the primary keys and parked_event_of_key. Locks the rows of parked_key that are missing.
    private static final String FIND_INHERITED_KEYS = "SELECT * FROM eventsql.inherited_keys_v1(?, ?::int[])";

    // Index: the primary key, in its order. Takes no row lock.
    private static final String LIST = """
            SELECT e.partition, e.event_offset, e.key, e.value, e.headers::text, e.published_at, e.dead_letter_stream,
                   e.dead_letter_offset, e.error, e.attempts, e.parked_at,
                   e.redrive OR e.dead_letter_offset IS NULL AND EXISTS (
                       SELECT FROM eventsql.parked_key k
                       WHERE k.consumer_id = e.consumer_id AND k.partition = e.partition AND k.key_hash = e.key_hash
                         AND k.redrive), e.erased_at IS NOT NULL
            FROM eventsql.parked_event e
            WHERE e.consumer_id = ?
            ORDER BY e.partition, e.event_offset
            LIMIT ?""";

    // Index: the primary key. Locks the deleted row.
    private static final String REMOVE = """
            DELETE FROM eventsql.parked_event
            WHERE consumer_id = ? AND partition = ? AND event_offset = ?""";

    // Indexes: parked_key_to_redrive and parked_event_of_key. Locks the deleted rows.
    private static final String FREE_KEYS = """
            DELETE FROM eventsql.parked_key k
            WHERE k.consumer_id = ? AND k.partition = ? AND k.redrive AND NOT EXISTS (
                SELECT FROM eventsql.parked_event e
                WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition AND e.key_hash = k.key_hash
                  AND e.dead_letter_offset IS NULL)
              AND NOT eventsql.is_parked_before_v1(k.consumer_id, k.partition, k.key_hash)
            RETURNING k.key""";

    // Indexes: the primary keys. Locks the updated rows, in the order of their primary key.
    private static final String REDRIVE_IN_RECEIVERS = """
            WITH RECURSIVE receiver AS (
                SELECT b.stream_id, b.partition
                FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
                WHERE c.consumer_id = ? AND b.giver = ?
                UNION
                SELECT b.stream_id, b.partition
                FROM receiver r JOIN eventsql.partition_barrier b ON b.stream_id = r.stream_id AND b.giver = r.partition
            ), following AS MATERIALIZED (
                SELECT k.partition, k.key_hash
                FROM eventsql.parked_key k
                WHERE k.consumer_id = ? AND k.partition IN (SELECT r.partition FROM receiver r) AND NOT k.redrive
                  AND k.key_hash IN (SELECT eventsql.key_hash_v1(u.key) FROM unnest(?::text[]) AS u (key))
                ORDER BY k.partition, k.key_hash FOR NO KEY UPDATE
            )
            UPDATE eventsql.parked_key k
            SET redrive = true
            FROM following f
            WHERE k.consumer_id = ? AND k.partition = f.partition AND k.key_hash = f.key_hash""";

    // Index: the primary key. Locks the updated row.
    private static final String RECORD_FAILURE = """
            UPDATE eventsql.parked_event
            SET redrive = false, error = CASE WHEN erased_at IS NULL THEN ? ELSE error END, attempts = attempts + ?
            WHERE consumer_id = ? AND partition = ? AND event_offset = ?""";

    // Index: the primary key. Locks the updated row.
    private static final String END_REDRIVE_OF_KEY = """
            UPDATE eventsql.parked_key
            SET redrive = false
            WHERE consumer_id = ? AND partition = ? AND key_hash = eventsql.key_hash_v1(?)""";

    // Indexes: the primary key and parked_event_of_key. Locks the updated rows.
    private static final String REQUEST_REDRIVE_OF_KEYS = """
            UPDATE eventsql.parked_key k
            SET redrive = true
            WHERE k.consumer_id = ? AND k.partition = ? AND (?::bigint[] IS NULL OR EXISTS (
                SELECT FROM eventsql.parked_event e
                WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition AND e.key_hash = k.key_hash
                  AND e.dead_letter_offset IS NULL AND e.event_offset = ANY (?::bigint[])))""";

    // Index: the primary key. Locks the updated rows.
    private static final String REQUEST_REDRIVE_OF_DEAD_LETTERS = """
            UPDATE eventsql.parked_event
            SET redrive = true
            WHERE consumer_id = ? AND partition = ? AND dead_letter_offset IS NOT NULL
              AND (?::bigint[] IS NULL OR event_offset = ANY (?::bigint[]))""";

    // Indexes: the primary keys. Takes no row lock.
    private static final String COUNT_TO_REDRIVE = """
            SELECT count(*)
            FROM eventsql.parked_event e
            WHERE e.consumer_id = ? AND e.partition = ?
              AND (e.redrive OR e.dead_letter_offset IS NULL AND EXISTS (
                  SELECT FROM eventsql.parked_key k
                  WHERE k.consumer_id = e.consumer_id AND k.partition = e.partition AND k.key_hash = e.key_hash
                    AND k.redrive))""";

    // Index: the primary key. Locks the deleted rows.
    private static final String DROP = """
            DELETE FROM eventsql.parked_event
            WHERE consumer_id = ? AND partition = ? AND event_offset = ANY (?::bigint[])
            RETURNING CASE WHEN dead_letter_offset IS NULL THEN key END""";

    // Indexes: the primary key and parked_event_of_key. Locks the updated row.
    private static final String REQUEST_FREEING_OF_KEY = """
            UPDATE eventsql.parked_key k
            SET redrive = true
            WHERE k.consumer_id = ? AND k.partition = ? AND k.key_hash = eventsql.key_hash_v1(?) AND NOT EXISTS (
                SELECT FROM eventsql.parked_event e
                WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition AND e.key_hash = k.key_hash
                  AND e.dead_letter_offset IS NULL)""";

    private final SqlSchema schema;

    public ParkedEventTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * One row.
     *
     * @param headers empty if the stored ones cannot be decoded
     * @param storedHeaders the headers as they are stored
     * @param undecodable why they cannot be decoded; {@code null}: they can
     * @param deadLetterStream {@code null}: parked with its key
     * @param value empty if there is none
     * @param valueState whether there is one
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the event as it is
    public record Row(
            int partition,
            long offset,
            @Nullable String key,
            byte[] value,
            Map<String, String> headers,
            @Nullable String storedHeaders,
            @Nullable IllegalArgumentException undecodable,
            Instant publishedAt,
            @Nullable String deadLetterStream,
            @Nullable Long deadLetterOffset,
            String error,
            int attempts,
            Instant parkedAt,
            boolean redriving,
            ValueState valueState) {
        public boolean isErased() {
            return valueState == ValueState.ERASED;
        }
    }

    /** Returns whether the event is parked or dead-lettered already. */
    public boolean isParkedEvent(Connection connection, int consumerId, int partition, long offset) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql(IS_PARKED), consumerId, partition, offset));
    }

    /**
     * Adds an event that was dead-lettered: its copy is in the dead-letter stream.
     *
     * @param headers the event's headers as JSON; {@code null}: none
     */
    public void addDeadLetter(
            Connection connection,
            int consumerId,
            StoredEvent event,
            @Nullable String headers,
            EventPosition deadLetter,
            String error,
            int attempts)
            throws SQLException {
        insert(connection, consumerId, List.of(event), e -> headers, deadLetter, error, attempts);
    }

    /** Returns the headers of an event as JSON; {@code null} if it has none. */
    @FunctionalInterface
    public interface Headers {
        @Nullable
        String json(StoredEvent event);
    }

    /** Adds events of parked keys. */
    public void park(
            Connection connection,
            int consumerId,
            List<StoredEvent> events,
            Headers headers,
            String error,
            int attempts)
            throws SQLException {
        insert(connection, consumerId, events, headers, null, error, attempts);
    }

    private void insert(
            Connection connection,
            int consumerId,
            List<StoredEvent> events,
            Headers headers,
            @Nullable EventPosition deadLetter,
            String error,
            int attempts)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.sql(INSERT))) {
            for (StoredEvent event : events) {
                statement.setInt(1, consumerId);
                statement.setInt(2, event.partition());
                statement.setLong(3, event.offset());
                statement.setString(4, event.key());
                statement.setBytes(5, StoredValue.of(event));
                statement.setString(6, headers.json(event));
                statement.setObject(7, OffsetDateTime.ofInstant(event.publishedAt(), ZoneOffset.UTC));
                statement.setString(8, deadLetter == null ? null : deadLetter.stream());
                statement.setObject(9, deadLetter == null ? null : deadLetter.offset(), Types.BIGINT);
                statement.setString(10, error.replace('\0', ' '));
                statement.setInt(11, attempts);
                statement.addBatch();
            }
            statement.executeBatch();
        } catch (BatchUpdateException e) { // its message contains the row; that of its cause is the database's sentence
            throw e.getCause() instanceof SQLException cause ? cause : e;
        }
    }

    /** Parks the keys that are not parked yet: their events are parked from now on. */
    public void parkKeys(Connection connection, int consumerId, int partition, Collection<String> keys) {
        Jooq.using(connection).execute(schema.sql(PARK_KEYS), consumerId, partition, keys.toArray(String[]::new));
    }

    /**
     * Parks those keys that have belonged to the partition by any map of its stream, and are still parked in a giver. A later map may
     * have moved them on, but the partition has events of them.
     *
     * @param slots the slot of each key in the maps of the stream
     * @param keySlots the key slot of each of them, by which it belongs to a shard
     */
    public void parkOwnKeys(
            Connection connection,
            int consumerId,
            int streamId,
            int partition,
            List<String> keys,
            List<Integer> slots,
            List<Integer> keySlots) {
        Jooq.using(connection)
                .execute(
                        schema.sql(PARK_OWN_KEYS),
                        partition,
                        streamId,
                        consumerId,
                        keys.toArray(String[]::new),
                        slots.toArray(Integer[]::new),
                        keySlots.toArray(Integer[]::new));
    }

    /** Returns the parked keys of some partitions, with those of parked events whose key is not recorded. */
    public Map<Integer, Set<String>> parkedKeys(Connection connection, int consumerId, Collection<Integer> partitions) {
        return keys(connection, FIND_PARKED_KEYS, consumerId, partitions);
    }

    /**
     * Returns the keys that are parked where the keys of some partitions came from when the stream has grown, and not in these
     * partitions.
     */
    public Map<Integer, Set<String>> inheritedKeys(
            Connection connection, int consumerId, Collection<Integer> partitions) {
        return keys(connection, FIND_INHERITED_KEYS, consumerId, partitions);
    }

    private Map<Integer, Set<String>> keys(
            Connection connection, String query, int consumerId, Collection<Integer> partitions) {
        Map<Integer, Set<String>> keys = new HashMap<>();
        for (Record row :
                Jooq.using(connection).fetch(schema.sql(query), consumerId, partitions.toArray(Integer[]::new))) {
            keys.computeIfAbsent(row.get(0, Integer.class), p -> new HashSet<>())
                    .add(row.get(1, String.class));
        }
        return keys;
    }

    /** Returns the next events of a partition to redrive, in order. */
    public List<Row> findToRedrive(Connection connection, int consumerId, int partition, int max) throws SQLException {
        return Jooq.using(connection)
                .fetch(schema.sql(FIND_TO_REDRIVE), consumerId, partition, max)
                .map(ParkedEventTable::row);
    }

    /** Returns the parked and dead-lettered events of a consumer on this shard, by partition and offset. */
    public List<Row> list(Connection connection, int consumerId, int max) throws SQLException {
        return Jooq.using(connection).fetch(schema.sql(LIST), consumerId, max).map(ParkedEventTable::row);
    }

    private static Row row(Record r) {
        byte @Nullable [] value = r.get(3, byte[].class);
        boolean isErased = r.get(12, Boolean.class);
        @Nullable String json = r.get(4, String.class);
        Map<String, String> headers = Map.of();
        @Nullable IllegalArgumentException undecodable = null;
        try {
            headers = json == null ? Map.of() : HeadersJson.decode(json);
        } catch (IllegalArgumentException e) {
            undecodable = isErased ? null : e;
        }
        return new Row(
                r.get(0, Integer.class),
                r.get(1, Long.class),
                r.get(2, String.class),
                StoredValue.orEmpty(value),
                headers,
                json,
                undecodable,
                r.get(5, OffsetDateTime.class).toInstant(),
                r.get(6, String.class),
                r.get(7, Long.class),
                r.get(8, String.class),
                r.get(9, Integer.class),
                r.get(10, OffsetDateTime.class).toInstant(),
                r.get(11, Boolean.class),
                StoredValue.state(value, isErased));
    }

    /** Removes an event that was handled. Returns whether it was still parked. */
    public boolean remove(Connection connection, int consumerId, int partition, long offset) {
        return Jooq.using(connection).execute(schema.sql(REMOVE), consumerId, partition, offset) == 1;
    }

    /**
     * Frees the keys with a requested redrive that have no parked event any more. Their later events in partitions to which they have
     * moved are redriven next. Returns them.
     */
    public List<String> freeKeys(Connection connection, int consumerId, int partition) {
        var dsl = Jooq.using(connection);
        List<String> freed =
                dsl.fetch(schema.sql(FREE_KEYS), consumerId, partition).getValues(0, String.class);
        if (!freed.isEmpty()) {
            dsl.execute(
                    schema.sql(REDRIVE_IN_RECEIVERS),
                    consumerId,
                    partition,
                    consumerId,
                    freed.toArray(String[]::new),
                    consumerId);
        }
        return freed;
    }

    /** Records that the redrive of an event failed: it stays parked, and so does its key, unless the event was dropped. */
    public void recordFailure(
            Connection connection, int consumerId, int partition, Row row, String error, int attempts) {
        var dsl = Jooq.using(connection);
        int recorded = dsl.execute(
                schema.sql(RECORD_FAILURE), error.replace('\0', ' '), attempts, consumerId, partition, row.offset());
        boolean isDropped = recorded == 0; // in the meantime, which frees its key
        if (!isDropped && row.deadLetterOffset() == null) {
            dsl.execute(schema.sql(END_REDRIVE_OF_KEY), consumerId, partition, row.key());
        }
    }

    /**
     * Requests that events of a partition are redriven.
     *
     * @param offsets {@code null}: all of them
     * @return how many events are to be redriven
     */
    public int requestRedrive(Connection connection, int consumerId, int partition, long @Nullable [] offsets) {
        var dsl = Jooq.using(connection);
        Long[] which = offsets == null ? null : Arrays.stream(offsets).boxed().toArray(Long[]::new);
        parkedKeys(connection, consumerId, List.of(partition)); // records missing keys, whose events are redriven, too
        dsl.execute(schema.sql(REQUEST_REDRIVE_OF_KEYS), consumerId, partition, which, which);
        dsl.execute(schema.sql(REQUEST_REDRIVE_OF_DEAD_LETTERS), consumerId, partition, which, which);
        return dsl.fetchSingle(schema.sql(COUNT_TO_REDRIVE), consumerId, partition)
                .get(0, Integer.class);
    }

    /**
     * Deletes events without handling them. A key without any event left is freed by the partition's holder, as after a
     * redrive.
     *
     * @return how many there were
     */
    public int drop(Connection connection, int consumerId, int partition, long[] offsets) {
        var dsl = Jooq.using(connection);
        Long[] which = Arrays.stream(offsets).boxed().toArray(Long[]::new);
        List<String> keys =
                dsl.fetch(schema.sql(DROP), consumerId, partition, which).getValues(0, String.class);
        for (String key : new HashSet<>(keys)) {
            if (key != null) {
                dsl.execute(schema.sql(REQUEST_FREEING_OF_KEY), consumerId, partition, key);
            }
        }
        return keys.size();
    }
}
