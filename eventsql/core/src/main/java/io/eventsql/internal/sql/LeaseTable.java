package io.eventsql.internal.sql;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code consumer_member} and {@code consumer_partition}: the members of consumers and their leases, by the database's
 * clock. Statements use the primary keys and lock the rows of a consumer in the order of its partitions.
 */
public final class LeaseTable {
    // Indexes: the primary keys of consumer_member and consumer_partition, the partial indexes on what is to be
    // redriven. Locks the members' rows, then those of the partitions they hold, by consumer and partition.
    private static final String HEARTBEAT = """
            SELECT member, renewed, revoked, to_redrive, share, free, next_expiry_ms
            FROM eventsql.heartbeat_v1(?, ?, make_interval(secs => ?), ?, ?, ?, ?, ?)""";

    // Index: the primary key. Locks free rows, and skips locked ones.
    private static final String TAKE = """
            SELECT partition, epoch, next_offset
            FROM eventsql.take_partitions_v1(?, ?, ?, make_interval(secs => ?), ?, ?::int[])""";

    // Indexes: the primary keys, consumer_offset_newest. Locks the rows of the partitions, or of all if some wait for
    // others, then the deleted ones of consumer_offset, each in the order of the partitions.
    private static final String SEEK = "SELECT eventsql.seek_v2(?, ?, ?::int[], ?::bigint[], ?::bigint[])";

    // Index: the primary key. Locks the deleted row.
    private static final String LEAVE = """
            DELETE FROM eventsql.consumer_member
            WHERE consumer_id = ? AND member_id = ?""";

    // Index: the primary key. Locks the updated row.
    private static final String STOP = """
            UPDATE eventsql.consumer_partition
            SET state = 'stopped', error = ?, state_since = clock_timestamp(), member_id = NULL, expires_at = NULL
            WHERE consumer_id = ? AND partition = ? AND (member_id = ? OR state = 'stopped')""";

    // Index: the primary key. Locks the updated row.
    private static final String SET_CONDITION = """
            UPDATE eventsql.consumer_partition
            SET error = ?
            WHERE consumer_id = ? AND partition = ? AND member_id = ? AND state = 'running'""";

    // Index: the primary key, in its order: the lock order of all statements.
    private static final String LOCK_ALL = """
            SELECT FROM eventsql.consumer_partition
            WHERE consumer_id = ?
            ORDER BY partition
            FOR NO KEY UPDATE""";

    // Index: the primary key. The rows are locked already.
    private static final String PAUSE = """
            UPDATE eventsql.consumer_partition
            SET state = 'paused', state_since = clock_timestamp()
            WHERE consumer_id = ? AND state = 'running'""";

    // Index: the primary key. The rows are locked already.
    private static final String RESUME = """
            UPDATE eventsql.consumer_partition
            SET state = 'running', error = NULL, state_since = clock_timestamp()
            WHERE consumer_id = ? AND state <> 'running'""";

    private final SqlSchema schema;
    private final String heartbeat;
    private final OffsetTable offsets;

    public LeaseTable(SqlSchema schema) {
        this.schema = schema;
        offsets = new OffsetTable(schema);
        heartbeat = schema.sql(HEARTBEAT);
    }

    /**
     * One member in a heartbeat.
     *
     * @param maxPartitions the maximum number of partitions that it takes
     * @param held the partitions whose leases are to be renewed
     */
    public record HeartbeatRequest(int consumerId, UUID memberId, String name, int maxPartitions, List<Integer> held) {}

    /**
     * The reply to one member's heartbeat.
     *
     * @param member its position in the heartbeat, from 0
     * @param renewed the partitions whose leases it still has
     * @param revoked those of them that it must release, because they are paused or stopped
     * @param toRedrive those with parked events to redrive
     * @param share its fair share of partitions
     * @param free how many partitions have no holder
     * @param nextExpiryMs the time until the next lease of another member expires, in milliseconds; {@code null}: none
     */
    public record HeartbeatReply(
            int member,
            Set<Integer> renewed,
            Set<Integer> revoked,
            Set<Integer> toRedrive,
            int share,
            int free,
            @Nullable Long nextExpiryMs) {}

    /**
     * A partition that was taken.
     *
     * @param epoch the epoch of the new holder, which fences out former ones
     * @param nextOffset the offset to start at
     * @param consumedEvents how many events the consumer has consumed of the partition, repeated ones included
     */
    public record TakenPartition(int partition, long epoch, long nextOffset, long consumedEvents) {}

    /**
     * Sends the heartbeat of all members of a process. There is no reply for a consumer that was deleted.
     *
     * @param incarnation that of the database when the consumers' ids were read; {@code null}: not compared
     */
    public List<HeartbeatReply> heartbeat(
            Connection connection,
            @Nullable String incarnation,
            int shard,
            Duration lease,
            List<HeartbeatRequest> requests)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(heartbeat)) {
            statement.setString(1, incarnation);
            statement.setInt(2, shard);
            statement.setDouble(3, lease.toMillis() / 1e3);
            statement.setArray(4, pg.createArrayOf("int4", ints(requests, HeartbeatRequest::consumerId)));
            statement.setArray(
                    5,
                    connection.createArrayOf(
                            "uuid",
                            requests.stream().map(HeartbeatRequest::memberId).toArray()));
            statement.setArray(
                    6,
                    connection.createArrayOf(
                            "text",
                            requests.stream().map(HeartbeatRequest::name).toArray()));
            statement.setArray(7, pg.createArrayOf("int4", ints(requests, HeartbeatRequest::maxPartitions)));
            statement.setArray(
                    8,
                    connection.createArrayOf(
                            "text",
                            requests.stream()
                                    .map(request -> arrayText(request.held()))
                                    .toArray()));
            List<HeartbeatReply> replies = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    replies.add(new HeartbeatReply(
                            rows.getInt(1) - 1,
                            set(rows.getArray(2)),
                            set(rows.getArray(3)),
                            set(rows.getArray(4)),
                            rows.getInt(5),
                            rows.getInt(6),
                            rows.getObject(7, Long.class)));
                }
            }
            return replies;
        }
    }

    /**
     * Takes up to {@code count} free partitions, none of {@code except}. Does not wait for concurrent takes. Call it in a
     * transaction.
     *
     * @param incarnation that of the database when the consumer's id was read; {@code null}: not compared
     */
    public List<TakenPartition> take(
            Connection connection,
            @Nullable String incarnation,
            int consumerId,
            UUID memberId,
            Duration lease,
            int count,
            Collection<Integer> except) {
        var rows = Jooq.using(connection)
                .fetch(
                        schema.sql(TAKE),
                        incarnation,
                        consumerId,
                        memberId,
                        lease.toMillis() / 1e3,
                        count,
                        except.toArray(Integer[]::new));
        if (rows.isEmpty()) {
            return List.of();
        }
        Map<Integer, Long> consumed = offsets.consumedEvents(connection, consumerId);
        return rows.map(r -> {
            int partition = r.get(0, Integer.class);
            long events = consumed.getOrDefault(partition, 0L);
            return new TakenPartition(partition, r.get(1, Long.class), r.get(2, Long.class), events);
        });
    }

    /** Releases partitions, if the member still holds them. */
    public void release(Connection connection, int consumerId, UUID memberId, Collection<Integer> partitions) {
        Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT eventsql.release_partitions_v1(?, ?, ?::int[])"),
                        consumerId,
                        memberId,
                        partitions.toArray(Integer[]::new));
    }

    /**
     * Removes the member, in the caller's transaction, which does not wait for synchronous replicas: its share goes to the
     * others.
     */
    public void leave(Connection connection, int consumerId, UUID memberId) {
        doNotAwaitReplicas(connection);
        Jooq.using(connection).execute(schema.sql(LEAVE), consumerId, memberId);
    }

    /**
     * Stops a partition: records the error and frees the partition, in the caller's transaction.
     *
     * @return whether the member still held it, or it is stopped already
     */
    public boolean stop(Connection connection, int consumerId, UUID memberId, int partition, String error) {
        return Jooq.using(connection)
                        .execute(schema.sql(STOP), error.replace('\0', ' '), consumerId, partition, memberId)
                == 1;
    }

    /**
     * Stores why a running partition makes no progress; {@code null}: it does. In the caller's transaction, which does not
     * wait for synchronous replicas: it would keep the row from the heartbeats.
     *
     * @return whether the member still held it
     */
    public boolean setCondition(
            Connection connection, int consumerId, UUID memberId, int partition, @Nullable String condition) {
        doNotAwaitReplicas(connection);
        String text = condition == null ? null : condition.replace('\0', ' ');
        return Jooq.using(connection).execute(schema.sql(SET_CONDITION), text, consumerId, partition, memberId) == 1;
    }

    /**
     * Moves the consumer in some partitions and frees these: their holders lose them. Call it in a transaction.
     *
     * @param nextOffsets the new offset in each partition
     * @return how many of the partitions exist
     */
    public int seek(Connection connection, int consumerId, Map<Integer, Long> nextOffsets) {
        return seek(connection, null, consumerId, nextOffsets, null);
    }

    /**
     * Moves the consumer in one partition, as {@link #seek} does.
     *
     * @param incarnation that of the database when the consumer's id was read
     * @param epoch the epoch that the partition must have
     * @return whether the partition exists
     * @throws org.jooq.exception.DataAccessException with state {@link SqlErrors#PARTITION_TAKEN} if it has another
     *     epoch
     */
    public boolean seekAtEpoch(
            Connection connection, String incarnation, int consumerId, int partition, long nextOffset, long epoch) {
        return seek(connection, incarnation, consumerId, Map.of(partition, nextOffset), epoch) == 1;
    }

    private int seek(
            Connection connection,
            @Nullable String incarnation,
            int consumerId,
            Map<Integer, Long> nextOffsets,
            @Nullable Long epoch) {
        return Objects.requireNonNull((Integer) Jooq.using(connection)
                .fetchValue(
                        schema.sql(SEEK),
                        incarnation,
                        consumerId,
                        nextOffsets.keySet().toArray(Integer[]::new),
                        nextOffsets.values().toArray(Long[]::new),
                        epoch == null ? null : new Long[] {epoch}));
    }

    /** Pauses running partitions; their holders release them. */
    public void pause(Connection connection, int consumerId) {
        lockAll(connection, consumerId);
        Jooq.using(connection).execute(schema.sql(PAUSE), consumerId);
    }

    /** Resumes paused and stopped partitions. */
    public void resume(Connection connection, int consumerId) {
        lockAll(connection, consumerId);
        Jooq.using(connection).execute(schema.sql(RESUME), consumerId);
    }

    private void doNotAwaitReplicas(Connection connection) {
        Jooq.using(connection).fetch(schema.sql("SELECT eventsql.do_not_await_replicas_v1()"));
    }

    private void lockAll(Connection connection, int consumerId) {
        Jooq.using(connection).fetch(schema.sql(LOCK_ALL), consumerId);
    }

    /** Arrays of different lengths cannot be the elements of an array, except as text. */
    private static String arrayText(List<Integer> partitions) {
        return partitions.stream().map(String::valueOf).collect(Collectors.joining(",", "{", "}"));
    }

    private static <T> int[] ints(List<T> list, java.util.function.ToIntFunction<T> value) {
        return list.stream().mapToInt(value).toArray();
    }

    private static Set<Integer> set(Array array) throws SQLException {
        return Arrays.stream((Integer[]) array.getArray()).collect(Collectors.toUnmodifiableSet());
    }
}
