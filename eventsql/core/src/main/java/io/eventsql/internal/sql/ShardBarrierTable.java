package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * {@code shard_barrier} and what belongs to it: what a consumer must have handled on other shards, since keys have moved, and how
 * often it was moved itself. All in the caller's transaction.
 */
public final class ShardBarrierTable {
    // Indexes: the primary keys. Takes no lock.
    private static final String AWAITED = """
            SELECT map_version, giver, giver_partition, end_offset FROM eventsql.awaited_of_shards_v1(?)""";

    // Indexes: the primary keys, consumer_offset_newest, producer_batch_head. Takes no lock.
    private static final String HAS_HANDLED = "SELECT eventsql.has_handled_v1(?, ?, ?, ?::int[], ?::bigint[])";

    // Index: the primary key. Takes no lock.
    private static final String CLOSED_SLOTS = "SELECT slots FROM eventsql.closed_slots WHERE map_version = ?";

    // Index: the primary key. Takes no lock.
    private static final String SEEKS = "SELECT eventsql.seeks_v1(?, ?)";

    // Indexes: the primary keys. Lock the consumer's row, and its partitions in the last case.
    private static final String PASS = "SELECT eventsql.pass_shard_v1(?, ?, ?, ?)";
    private static final String COUNT_SEEK = "SELECT eventsql.count_seek_v1(?, ?, ?)";
    private static final String HOLD = "SELECT eventsql.hold_receivers_v1(?, ?::int[], ?::bigint[])";

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

    /** Returns what a consumer must have handled on other shards, as far as no member has reported that it has. */
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

    /** Returns the slots that this shard has closed for a slot map. */
    public Set<Integer> closedSlots(Connection connection, int version) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(CLOSED_SLOTS), version)
                .map(r -> Arrays.stream(r.get(0, Short[].class))
                        .map(Short::intValue)
                        .collect(Collectors.toUnmodifiableSet()))
                .orElse(Set.of());
    }

    /** Returns how often a consumer was moved on a shard, as far as this one knows. */
    public long seeks(Connection connection, int consumerId, int shard) {
        return Objects.requireNonNull((Long) Jooq.using(connection).fetchValue(schema.sql(SEEKS), consumerId, shard));
    }

    /**
     * Records that a consumer has handled what a shard had to be handled of.
     *
     * @param seeks how often it had been moved there when that was read
     * @return {@code false} if it is going to be moved there, or was since
     */
    public boolean pass(Connection connection, int consumerId, int version, int giver, long seeks) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql(PASS), consumerId, version, giver, seeks));
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
     * Holds a consumer back on this shard, because it is going to be moved on others.
     *
     * @param seeks how often it will have been moved on each of these shards
     */
    public void holdReceivers(
            Connection connection, int consumerId, Collection<Integer> givers, Collection<Long> seeks) {
        Jooq.using(connection)
                .fetch(schema.sql(HOLD), consumerId, givers.toArray(Integer[]::new), seeks.toArray(Long[]::new));
    }
}
