package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The functions that move key slots between shards, and what they have stored. All in the caller's transaction. */
public final class MoveFunctions {
    // Scans shard_move, which has a row at most.
    private static final String FIND = """
            SELECT map_version, slot_map, attempt, is_plan, is_receiver, is_closing
            FROM eventsql.shard_move ORDER BY map_version DESC LIMIT 1""";

    // Indexes: the primary keys. Take row locks as the functions say.
    private static final String DECIDE = "SELECT eventsql.decide_move_v2(?, ?::smallint[], ?)";
    private static final String JOIN = "SELECT eventsql.join_move_v2(?, ?::smallint[], ?, ?)";
    private static final String KEEP = "SELECT eventsql.keep_streams_v1(?, ?, ?::text[], ?::int[], ?::text[])";
    private static final String FREEZE = "SELECT eventsql.freeze_receiver_v1(?, ?)";
    private static final String BEGIN_CLOSING = "SELECT eventsql.begin_closing_v2(?, ?)";
    private static final String RECEIVE = "SELECT eventsql.receive_slots_v1(?, ?, ?, ?, ?::smallint[], ?::int[])";
    private static final String CLOSE = "SELECT eventsql.close_slots_v1(?, ?::smallint[])";
    private static final String OPEN = "SELECT eventsql.open_slots_v1(?, ?::text[], ?::int[], ?::int[], ?::bigint[])";
    private static final String FINISH = "SELECT eventsql.finish_move_v1(?, ?::smallint[])";
    private static final String CANCEL = "SELECT eventsql.cancel_move_v1(?)";
    private static final String LEAVE = "SELECT eventsql.leave_move_v1(?, ?)";
    private static final String REMOVE = "SELECT eventsql.remove_shard_v1()";
    private static final String FORGET = "SELECT eventsql.forget_shard_v1(?)";

    // Indexes: the primary keys of slot_end and stream. Takes no row lock.
    private static final String ENDS = """
            SELECT s.name, e.partition, e.end_offset
            FROM eventsql.slot_end e JOIN eventsql.stream s USING (stream_id)
            WHERE e.map_version = ?
            ORDER BY s.name, e.partition""";

    // Scans stationary_stream and stream. Takes no row lock.
    private static final String STATIONARY = """
            SELECT k.stream, k.map_version, k.slot_map::text, h.shard_number = ANY (h.spare_shards)
            FROM eventsql.stationary_stream k CROSS JOIN eventsql.shard h
            UNION ALL
            SELECT s.name, h.map_version, h.slot_map::text, true
            FROM eventsql.stream s CROSS JOIN eventsql.shard h
            WHERE (s.compaction OR s.key_tracking <> 'off')
              AND NOT EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = s.name)""";

    // Index: the primary key. Takes no row lock.
    private static final String IS_STATIONARY = """
            SELECT EXISTS (SELECT FROM eventsql.stationary_stream WHERE stream = ?)""";

    // Scans stationary_stream and sink_producer. Index: producer_batch_of_producer. Takes no row lock.
    private static final String STAYING = """
            SELECT stream FROM eventsql.stationary_stream
            UNION
            SELECT stream FROM eventsql.sink_streams_v1()""";

    // Index: the primary key. Takes no row lock.
    private static final String IS_PREPARED = """
            SELECT EXISTS (
                SELECT FROM eventsql.stream_placement WHERE stream_id = ? AND cluster_version = ?)""";

    // Indexes: the primary keys, producer_batch_head. Takes no row lock.
    private static final String CLOSED_PARTITIONS = """
            SELECT b.partition FROM eventsql.partition_barrier b
            WHERE b.stream_id = ? AND b.end_offset = 9223372036854775807
              AND NOT EXISTS (
                  SELECT FROM eventsql.moved_partition m
                  WHERE m.stream_id = b.stream_id AND m.partition = b.partition)
              AND NOT EXISTS (
                  SELECT FROM eventsql.producer_batch h
                  WHERE h.stream_id = b.stream_id AND h.partition = b.partition AND h.next_offset > 0)
            ORDER BY b.partition""";

    // Index: the primary key. Locks the row of the barrier.
    private static final String OPEN_PARTITION = "SELECT eventsql.open_partition_v1(?, ?)";

    // Index: the primary key. Takes no row lock.
    private static final String UNOPENED = """
            SELECT partition FROM eventsql.moved_partition WHERE stream_id = ? AND NOT is_open ORDER BY partition""";

    // Indexes: the primary keys. Takes no row lock.
    private static final String GIVERS = """
            SELECT s.name, b.giver, b.giver_partition, max(b.end_offset)
            FROM eventsql.shard_barrier b JOIN eventsql.stream s USING (stream_id)
            GROUP BY s.name, b.giver, b.giver_partition""";

    // Indexes: stream_name_unique, the primary key of stream_partition. Takes no row lock.
    private static final String LOG_START = """
            SELECT p.log_start FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
            WHERE s.name = ? AND p.partition = ?""";

    // Scans consumer and stream, which are small.
    private static final String CONSUMERS = """
            SELECT s.name, c.name FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id) ORDER BY s.name, c.name""";

    private final SqlSchema schema;

    public MoveFunctions(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * A move that a shard knows of.
     *
     * @param attempt numbers the decisions of the shard where it was decided
     * @param isPlan whether it was decided on this shard, and not cancelled
     * @param isReceiver whether the shard receives slots
     * @param isClosing whether it cannot be cancelled any more, on the shard where it was decided
     */
    @SuppressWarnings("ArrayRecordComponent") // is not compared
    public record StoredMove(
            int version, int[] slotMap, long attempt, boolean isPlan, boolean isReceiver, boolean isClosing) {}

    /** The end of a partition when its shard closed slots. */
    public record End(String stream, int partition, long end) {}

    /** A consumer of a stream. */
    public record ConsumerOfStream(String stream, String consumer) {}

    /** Returns the move that the shard knows of. */
    public Optional<StoredMove> find(Connection connection) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(FIND))
                .map(r -> new StoredMove(
                        r.get("map_version", Integer.class),
                        Arrays.stream(r.get("slot_map", Short[].class))
                                .mapToInt(Short::intValue)
                                .toArray(),
                        r.get("attempt", Long.class),
                        r.get("is_plan", Boolean.class),
                        r.get("is_receiver", Boolean.class),
                        r.get("is_closing", Boolean.class)));
    }

    /** Decides the next slot map, unless a move to that version is decided. */
    public void decide(Connection connection, int version, int[] slotMap, boolean isReceiver) {
        Jooq.using(connection).fetch(schema.sql(DECIDE), version, boxed(slotMap), isReceiver);
    }

    /** Records the next slot map, which was decided on another shard. */
    public void join(Connection connection, int version, int[] slotMap, long attempt, boolean isReceiver) {
        Jooq.using(connection).fetch(schema.sql(JOIN), version, boxed(slotMap), attempt, isReceiver);
    }

    /**
     * A stream whose keys stay where they are.
     *
     * @param slotMap the slot map by which they belong to shards, as text
     * @param isOnSpareShard whether what other shards have recorded takes precedence
     */
    public record Stationary(String stream, int version, String slotMap, boolean isOnSpareShard) {}

    /**
     * Returns the streams that stay, as far as the shard has recorded them. A spare shard has not recorded those that were created
     * there: if no other shard has them, they begin with the slots as they are.
     */
    public List<Stationary> stationary(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql(STATIONARY))
                .map(r -> new Stationary(
                        r.get(0, String.class),
                        r.get(1, Integer.class),
                        r.get(2, String.class),
                        r.get(3, Boolean.class)));
    }

    /** Returns whether the shard has recorded that a stream stays. */
    public boolean isStationary(Connection connection, String stream) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(IS_STATIONARY), stream));
    }

    /** Returns the names of the streams that stay if keys move now. */
    public List<String> staying(Connection connection) {
        return Jooq.using(connection).fetch(schema.sql(STAYING)).map(r -> r.get(0, String.class));
    }

    /** Records the streams that stay, and rejects from now on who does not know that they do. */
    public void keep(Connection connection, int version, long attempt, Collection<Stationary> streams) {
        Jooq.using(connection)
                .fetch(
                        schema.sql(KEEP),
                        version,
                        attempt,
                        streams.stream().map(Stationary::stream).toArray(String[]::new),
                        streams.stream().map(Stationary::version).toArray(Integer[]::new),
                        streams.stream().map(Stationary::slotMap).toArray(String[]::new));
    }

    /**
     * Closes the streams that are created on a receiver from now on.
     *
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#NOT_PREPARED} if a stream was created in between
     */
    public void freeze(Connection connection, int version, long attempt) {
        Jooq.using(connection).fetch(schema.sql(FREEZE), version, attempt);
    }

    /** Excludes that the move is cancelled from now on. */
    public void beginClosing(Connection connection, int version, long attempt) {
        Jooq.using(connection).fetch(schema.sql(BEGIN_CLOSING), version, attempt);
    }

    /**
     * Gives a stream the map by which the keys of received slots belong to fresh partitions.
     *
     * @param former the version of the stream's map that the caller has seen
     * @param moved the partition of each key slot; {@code null}: all partitions are fresh
     */
    public void receive(
            Connection connection,
            int version,
            long attempt,
            int streamId,
            int former,
            short @Nullable [] moved,
            List<Integer> fresh) {
        Jooq.using(connection)
                .fetch(
                        schema.sql(RECEIVE),
                        version,
                        attempt,
                        streamId,
                        former,
                        moved == null ? null : GrowthFunctions.boxed(moved),
                        fresh.toArray(Integer[]::new));
    }

    /** Closes the slots that the shard gives away: this cannot be undone. */
    public void close(Connection connection, int version, int[] slotMap) {
        Jooq.using(connection).fetch(schema.sql(CLOSE), version, boxed(slotMap));
    }

    /** Returns the ends of the shard's partitions when it closed slots. */
    public List<End> ends(Connection connection, int version) {
        return Jooq.using(connection)
                .fetch(schema.sql(ENDS), version)
                .map(r -> new End(r.get(0, String.class), r.get(1, Integer.class), r.get(2, Long.class)));
    }

    /** Lets consumers take the fresh partitions, once they have handled the ends on the givers. */
    public void open(Connection connection, int version, List<Integer> givers, List<End> ends) {
        Jooq.using(connection)
                .fetch(
                        schema.sql(OPEN),
                        version,
                        ends.stream().map(End::stream).toArray(String[]::new),
                        givers.toArray(Integer[]::new),
                        ends.stream().map(End::partition).toArray(Integer[]::new),
                        ends.stream().map(End::end).toArray(Long[]::new));
    }

    /**
     * Makes the slot map the valid one.
     *
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#NOT_PREPARED} if a stream was created in between
     */
    public void finish(Connection connection, int version, int[] slotMap) {
        Jooq.using(connection).fetch(schema.sql(FINISH), version, boxed(slotMap));
    }

    /**
     * Cancels what was decided on this shard; returns the number of the last decision, of which nothing counts any more; {@code
     * null}: slots may have been closed.
     */
    public @Nullable Long cancel(Connection connection, int version) {
        return (Long) Jooq.using(connection).fetchValue(schema.sql(CANCEL), version);
    }

    /** Forgets a move that was cancelled where it was decided, and gives the streams their former maps. */
    public void leave(Connection connection, int version, long lastAttempt) {
        Jooq.using(connection).fetch(schema.sql(LEAVE), version, lastAttempt);
    }

    /** Removes the shard; returns why it cannot be removed yet; {@code null}: it is removed. */
    public @Nullable String remove(Connection connection) {
        return (String) Jooq.using(connection).fetchValue(schema.sql(REMOVE));
    }

    /** Records that a shard was removed. */
    public void forget(Connection connection, int shard) {
        Jooq.using(connection).fetch(schema.sql(FORGET), shard);
    }

    /** The end of a partition of another shard that came before what this shard has. */
    public record FormerEnd(String stream, int shard, int partition, long end) {}

    /** Returns the ends of other shards that came before what this shard has received. */
    public List<FormerEnd> formerEnds(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql(GIVERS))
                .map(r -> new FormerEnd(
                        r.get(0, String.class),
                        r.get(1, Integer.class),
                        r.get(2, Integer.class),
                        r.get(3, Long.class)));
    }

    /** Returns the first offset of a partition that still exists; empty if the stream was deleted. */
    public Optional<Long> logStart(Connection connection, String stream, int partition) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(LOG_START), stream, partition)
                .map(r -> r.get(0, Long.class));
    }

    /** Returns whether a stream has its map for a slot map. */
    public boolean isPrepared(Connection connection, int streamId, int version) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(IS_PREPARED), streamId, version));
    }

    /** Returns the partitions of a stream that are closed to consumers, have no events, and are not used by any move. */
    public List<Integer> closedPartitions(Connection connection, int streamId) {
        return Jooq.using(connection)
                .fetch(schema.sql(CLOSED_PARTITIONS), streamId)
                .map(r -> r.get(0, Integer.class));
    }

    /**
     * Lets consumers take a partition to which this transaction has appended a copy of a failed event: on a shard that keys have left
     * it may be closed.
     */
    public void openPartition(Connection connection, int streamId, int partition) {
        Jooq.using(connection).fetch(schema.sql(OPEN_PARTITION), streamId, partition);
    }

    /** Returns the partitions that were prepared for slots and are not open yet. */
    public List<Integer> unopened(Connection connection, int streamId) {
        return Jooq.using(connection).fetch(schema.sql(UNOPENED), streamId).map(r -> r.get(0, Integer.class));
    }

    /** Returns the consumers of all streams. */
    public List<ConsumerOfStream> consumers(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql(CONSUMERS))
                .map(r -> new ConsumerOfStream(r.get(0, String.class), r.get(1, String.class)));
    }

    private static Short[] boxed(int[] slotMap) {
        return Arrays.stream(slotMap).mapToObj(shard -> (short) shard).toArray(Short[]::new);
    }
}
