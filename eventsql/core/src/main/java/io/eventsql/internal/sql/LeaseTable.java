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
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code consumer_member} and {@code consumer_partition}: who lives, and who may handle what until when, all by the
 * database's clock. Statements go by primary key and lock a consumer's rows in the order of its partitions.
 */
public final class LeaseTable {
    private final SqlSchema schema;
    private final String beat;

    public LeaseTable(SqlSchema schema) {
        this.schema = schema;
        beat = schema.sql("SELECT member, renewed, ending, to_redrive, share, free, next_expiry_ms, history"
                + " FROM eventsql.beat_v1(?, make_interval(secs => ?), ?, ?, ?, ?, ?, ?)");
    }

    /**
     * One member in a heartbeat.
     *
     * @param maxPartitions the most it takes
     * @param held the partitions whose leases are to be renewed
     */
    public record Beat(int consumerId, UUID memberId, String name, int maxPartitions, List<Integer> held) {}

    /**
     * What a heartbeat says to one member.
     *
     * @param member its place in the heartbeat, from 0
     * @param renewed the leases it still has
     * @param ending those of them whose partitions shall not be handled any more
     * @param toRedrive those on which events set aside are to be handled again
     * @param share how many partitions it should hold
     * @param free how many partitions nobody holds
     * @param nextExpiryMs when the next lease of another member expires, in milliseconds from now; {@code null}: none
     * @param history changes when the database's log of events may have lost its end: after a failover
     */
    public record Answer(
            int member,
            Set<Integer> renewed,
            Set<Integer> ending,
            Set<Integer> toRedrive,
            int share,
            int free,
            @Nullable Long nextExpiryMs,
            String history) {}

    /**
     * A partition as its new holder takes it over.
     *
     * @param epoch the holder's epoch: proves that it is the holder
     * @param nextOffset where it begins
     */
    public record Taken(int partition, long epoch, long nextOffset) {}

    /** Renews all members of a process; a consumer that was deleted gets no answer. */
    public List<Answer> beat(Connection connection, int shard, Duration lease, List<Beat> beats) throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        List<Integer> heldMembers = new ArrayList<>();
        List<Integer> heldPartitions = new ArrayList<>();
        for (int i = 0; i < beats.size(); i++) {
            for (int partition : beats.get(i).held()) {
                heldMembers.add(i + 1);
                heldPartitions.add(partition);
            }
        }
        try (PreparedStatement statement = connection.prepareStatement(beat)) {
            statement.setInt(1, shard);
            statement.setDouble(2, lease.toMillis() / 1e3);
            statement.setArray(3, pg.createArrayOf("int4", ints(beats, Beat::consumerId)));
            statement.setArray(
                    4,
                    connection.createArrayOf(
                            "uuid", beats.stream().map(Beat::memberId).toArray()));
            statement.setArray(
                    5,
                    connection.createArrayOf(
                            "text", beats.stream().map(Beat::name).toArray()));
            statement.setArray(6, pg.createArrayOf("int4", ints(beats, Beat::maxPartitions)));
            statement.setArray(7, pg.createArrayOf("int4", ints(heldMembers, Integer::intValue)));
            statement.setArray(8, pg.createArrayOf("int4", ints(heldPartitions, Integer::intValue)));
            List<Answer> answers = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    answers.add(new Answer(
                            rows.getInt(1) - 1,
                            set(rows.getArray(2)),
                            set(rows.getArray(3)),
                            set(rows.getArray(4)),
                            rows.getInt(5),
                            rows.getInt(6),
                            rows.getObject(7, Long.class),
                            rows.getString(8)));
                }
            }
            return answers;
        }
    }

    /** Takes at most so many partitions that nobody holds, none of {@code except}; waits for no one who takes others. */
    public List<Taken> take(
            Connection connection,
            int consumerId,
            UUID memberId,
            Duration lease,
            int count,
            Collection<Integer> except) {
        return Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT partition, epoch, next_offset"
                                + " FROM eventsql.take_v1(?, ?, make_interval(secs => ?), ?, ?::int[])"),
                        consumerId,
                        memberId,
                        lease.toMillis() / 1e3,
                        count,
                        except.toArray(Integer[]::new))
                .map(r -> new Taken(r.get(0, Integer.class), r.get(1, Long.class), r.get(2, Long.class)));
    }

    /** Gives partitions back, if the member still holds them. */
    public void release(Connection connection, int consumerId, UUID memberId, Collection<Integer> partitions) {
        Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT eventsql.release_v1(?, ?, ?::int[])"),
                        consumerId,
                        memberId,
                        partitions.toArray(Integer[]::new));
    }

    /** The member ends: it counts no more. */
    public void leave(Connection connection, int consumerId, UUID memberId) {
        Jooq.using(connection)
                .execute(
                        schema.sql("DELETE FROM eventsql.consumer_member WHERE consumer_id = ? AND member_id = ?"),
                        consumerId,
                        memberId);
    }

    /**
     * Records that a partition is stopped and why, and frees it, in the caller's transaction.
     *
     * @return whether the member still held it
     */
    public boolean stop(Connection connection, int consumerId, UUID memberId, int partition, String error) {
        return Jooq.using(connection)
                        .execute(
                                schema.sql("UPDATE eventsql.consumer_partition SET state = 'stopped', error = ?,"
                                        + " state_since = clock_timestamp(), member_id = NULL, expires_at = NULL"
                                        + " WHERE consumer_id = ? AND partition = ? AND member_id = ?"),
                                error.replace('\0', ' '),
                                consumerId,
                                partition,
                                memberId)
                == 1;
    }

    /**
     * Moves the consumer in one partition, which frees it: its holder has lost it.
     *
     * @param epoch only if this is still the epoch; {@code null}: in any case
     * @return whether it was moved
     * @throws org.jooq.exception.DataAccessException with state {@link SqlErrors#TAKEN_MEANWHILE} if the epoch is another
     */
    public boolean seek(Connection connection, int consumerId, int partition, long nextOffset, @Nullable Long epoch) {
        return Boolean.TRUE.equals(Jooq.using(connection)
                .fetchValue(
                        schema.sql("SELECT eventsql.seek_v1(?, ?, ?, ?)"), consumerId, partition, nextOffset, epoch));
    }

    /** Pauses running partitions; their holders give them back. */
    public void pause(Connection connection, int consumerId) {
        lockAll(connection, consumerId);
        Jooq.using(connection)
                .execute(
                        schema.sql("UPDATE eventsql.consumer_partition SET state = 'paused',"
                                + " state_since = clock_timestamp() WHERE consumer_id = ? AND state = 'running'"),
                        consumerId);
    }

    /** Lets paused and stopped partitions run again. */
    public void resume(Connection connection, int consumerId) {
        lockAll(connection, consumerId);
        Jooq.using(connection)
                .execute(
                        schema.sql("UPDATE eventsql.consumer_partition SET state = 'running', error = NULL,"
                                + " state_since = clock_timestamp() WHERE consumer_id = ? AND state <> 'running'"),
                        consumerId);
    }

    private void lockAll(Connection connection, int consumerId) {
        Jooq.using(connection)
                .fetch(
                        schema.sql("SELECT FROM eventsql.consumer_partition WHERE consumer_id = ?"
                                + " ORDER BY partition FOR NO KEY UPDATE"),
                        consumerId);
    }

    private static <T> int[] ints(List<T> list, java.util.function.ToIntFunction<T> value) {
        return list.stream().mapToInt(value).toArray();
    }

    private static Set<Integer> set(Array array) throws SQLException {
        return Arrays.stream((Integer[]) array.getArray()).collect(Collectors.toUnmodifiableSet());
    }
}
