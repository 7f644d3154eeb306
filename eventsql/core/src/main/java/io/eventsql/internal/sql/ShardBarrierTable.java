package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * {@code shard_barrier} and what belongs to it: what a consumer must have handled on other shards, since keys have moved, and how
 * often it was moved itself. All in the caller's transaction.
 */
public final class ShardBarrierTable {
    // Indexes: the primary keys. Takes no lock.
    private static final String AWAITED = """
            SELECT map_version, giver, giver_partition, end_offset FROM eventsql.awaited_of_shards_v2(?)""";

    // Indexes: the primary keys, consumer_offset_newest, producer_batch_head. Takes no lock.
    private static final String HAS_HANDLED = "SELECT eventsql.has_handled_v1(?, ?, ?, ?::int[], ?::bigint[])";

    // Index: the primary key. Takes no lock.
    private static final String CLOSED_SLOTS = """
            SELECT u.slot
            FROM eventsql.closed_slots c CROSS JOIN unnest(c.slots, c.receivers) AS u (slot, receiver)
            WHERE c.map_version = ? AND coalesce(u.receiver = ?, true)""";

    // Indexes: the primary keys and parked_event_of_key. Locks the rows of parked_key that it inserts.
    private static final String KEYS_TO_MOVE = "SELECT * FROM eventsql.keys_to_move_v1(?, ?, ?::int[])";

    // Indexes: the primary keys. Takes no lock. A barrier without an end closes a partition that was not in use yet.
    private static final String VERSIONS = """
            WITH RECURSIVE own AS (
                SELECT c.stream_id, p.partition, coalesce(m.map_version, 0) AS version
                FROM eventsql.consumer c
                JOIN eventsql.consumer_partition p USING (consumer_id)
                LEFT JOIN eventsql.moved_partition m ON m.stream_id = c.stream_id AND m.partition = p.partition
                WHERE c.consumer_id = ?
            ), after AS (
                SELECT o.stream_id, o.partition, o.partition AS giver FROM own o
                UNION
                SELECT a.stream_id, a.partition, b.giver
                FROM after a JOIN eventsql.partition_barrier b ON b.stream_id = a.stream_id AND b.partition = a.giver
                WHERE b.end_offset < 9223372036854775807
            )
            SELECT a.partition, max(o.version) FROM after a JOIN own o ON o.partition = a.giver GROUP BY a.partition""";

    // Index: the primary key. Takes no lock.
    private static final String SEEKS = "SELECT eventsql.seeks_v1(?, ?)";

    // Indexes: the primary keys. Lock the consumer's row, then its parked keys (PASS) or its partitions (HOLD).
    private static final String PASS = """
            SELECT accepted, changed FROM eventsql.pass_shard_v2(?, ?, ?, ?, ?::text[], ?::bigint[])""";
    private static final String COUNT_SEEK = "SELECT eventsql.count_seek_v1(?, ?, ?)";
    private static final String HOLD = "SELECT eventsql.hold_receivers_v2(?, ?::int[], ?::bigint[], ?)";

    // Index: the primary key. COUNT_SEEK has locked the consumer's row before.
    private static final String RAISE_SEEKS = """
            UPDATE eventsql.consumer_seek k SET seeks = greatest(k.seeks, ?) WHERE k.consumer_id = ? AND k.shard = ?""";

    private final SqlSchema schema;

    public ShardBarrierTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * A partition of another shard that a consumer must have handled up to its end.
     *
     * @param version of the slot map by which the keys have moved
     */
    public record Awaited(int version, int giver, int partition, long end) {}

    /**
     * Returns what a consumer must have handled on other shards, as far as no member has reported that it has, or that no key that
     * has moved is parked there any more.
     */
    public List<Awaited> awaited(Connection connection, int consumerId) {
        return Jooq.using(connection)
                .fetch(schema.sql(AWAITED), consumerId)
                .map(r -> new Awaited(
                        r.get(0, Integer.class),
                        r.get(1, Integer.class),
                        r.get(2, Integer.class),
                        r.get(3, Long.class)));
    }

    /**
     * Returns how often a consumer was moved on this shard, if it has handled the partitions up to their ends.
     *
     * @param shard this shard's number
     * @param version of the slot map by which keys have moved away from it; what moved here before must be handled, too
     * @return {@code null} if it has not
     */
    public @Nullable Long hasHandled(
            Connection connection, int consumerId, int shard, int version, List<Awaited> partitions) {
        return (Long) Jooq.using(connection)
                .fetchValue(
                        schema.sql(HAS_HANDLED),
                        consumerId,
                        shard,
                        version,
                        partitions.stream().map(Awaited::partition).toArray(Integer[]::new),
                        partitions.stream().map(Awaited::end).toArray(Long[]::new));
    }

    /**
     * Returns the slots that this shard has closed for a slot map, and another one has received. All closed ones, if that was before
     * the receivers were recorded.
     */
    public Set<Integer> closedSlots(Connection connection, int version, int receiver) {
        return Set.copyOf(Jooq.using(connection)
                .fetch(schema.sql(CLOSED_SLOTS), version, receiver)
                .getValues(0, Integer.class));
    }

    /**
     * Returns the keys that are parked in partitions which the consumer has handled: no other key that has moved is parked there
     * later.
     *
     * @param version of the slot map by which keys have moved away
     * @param partitions those of {@link #hasHandled}, which was called before
     */
    public List<String> keysToMove(Connection connection, int consumerId, int version, List<Awaited> partitions) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql(KEYS_TO_MOVE),
                        consumerId,
                        version,
                        partitions.stream().map(Awaited::partition).toArray(Integer[]::new))
                .getValues(0, String.class);
    }

    /**
     * Returns for each partition of a consumer the version of the slot map by which it received keys of other shards, or the highest
     * one of those of this shard that it waits for; 0: none of them received any. A partition waits only for those of lower versions,
     * on this shard also for those of the same one.
     */
    public Map<Integer, Integer> versions(Connection connection, int consumerId) {
        return Jooq.using(connection)
                .fetch(schema.sql(VERSIONS), consumerId)
                .intoMap(r -> r.get(0, Integer.class), r -> r.get(1, Integer.class));
    }

    /** Returns how often a consumer was moved on a shard, as far as this one knows. */
    public long seeks(Connection connection, int consumerId, int shard) {
        return Objects.requireNonNull((Long) Jooq.using(connection).fetchValue(schema.sql(SEEKS), consumerId, shard));
    }

    /**
     * The outcome of a report.
     *
     * @param accepted {@code false}: the consumer is going to be moved on the giver, or was since the report was read
     * @param changed whether partitions or parked keys no longer wait
     */
    public record Passed(boolean accepted, boolean changed) {}

    /**
     * Records that a consumer has handled what a shard had to be handled of, and which keys are parked there.
     *
     * @param seeks how often it had been moved there when that was read
     * @param keys the hash of each key that has moved here and is parked there
     */
    public Passed pass(
            Connection connection, int consumerId, int version, int giver, long seeks, Map<String, Long> keys) {
        return Jooq.using(connection)
                .fetchSingle(
                        schema.sql(PASS),
                        consumerId,
                        version,
                        giver,
                        seeks,
                        keys.keySet().toArray(String[]::new),
                        keys.values().toArray(Long[]::new))
                .map(r -> new Passed(r.get(0, Boolean.class), r.get(1, Boolean.class)));
    }

    /**
     * Counts that a consumer is moved on this shard.
     *
     * @param seeks how often it had been moved here when other shards were notified
     * @param version the version of the slot map that the caller knows
     * @return {@code false} if it was moved since, or keys have
     */
    public boolean countSeek(Connection connection, int consumerId, long seeks, int version) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql(COUNT_SEEK), consumerId, seeks, version));
    }

    /**
     * Counts further seeks, up to what another shard requires, in a transaction that has counted one.
     *
     * @param shard this shard's number
     */
    public void raiseSeeks(Connection connection, int consumerId, int shard, long required) {
        Jooq.using(connection).execute(schema.sql(RAISE_SEEKS), required, consumerId, shard);
    }

    /**
     * Holds a consumer back on this shard, because it is going to be moved on others.
     *
     * @param seeks how often it will have been moved on each of these shards
     * @param version in partitions of higher versions, see {@link #versions}
     */
    public void holdReceivers(
            Connection connection, int consumerId, Collection<Integer> givers, Collection<Long> seeks, int version) {
        Jooq.using(connection)
                .fetch(
                        schema.sql(HOLD),
                        consumerId,
                        givers.toArray(Integer[]::new),
                        seeks.toArray(Long[]::new),
                        version);
    }
}
