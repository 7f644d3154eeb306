package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * {@code consumer_offset}: offset commits, each fenced by epoch and previous offset. Every statement finds a
 * partition's newest row as the last entry of its index range (consumer_offset_newest) and replaces it. Two concurrent
 * replacements of one row meet at its DELETE, where the second waits and then finds no row.
 */
public final class OffsetTable {
    // Index: consumer_offset_newest. Locks the deleted rows, in the order of the consumers and partitions.
    private static final String COMMIT = "SELECT * FROM eventsql.commit_offsets_v2(?, ?, ?, ?, ?, ?, ?)";

    // Reads no table. Takes a shared advisory lock.
    private static final String BEGIN_HANDLING =
            "SELECT eventsql.begin_handling_v1(?, ?, ?, ?), " + Database.NO_TRANSACTION_TIMEOUT;

    // Reads the one row of the database's identity. Takes a shared advisory lock.
    private static final String BEGIN_HANDLING_ON =
            "SELECT s.cluster_id = ? AND s.shard_number = ?, eventsql.begin_handling_v1(?, ?, ?, ?), "
                    + Database.NO_TRANSACTION_TIMEOUT + " FROM eventsql.shard s";

    // Index: consumer_offset_newest. Locks the deleted row.
    private static final String COMMIT_HANDLED = "SELECT eventsql.commit_handled_v1(?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Indexes: the primary key of consumer_partition, and consumer_offset_newest, of which it reads the last entries.
    // Takes no row lock.
    private static final String CONSUMED_EVENTS = """
            SELECT p.partition, o.consumed_events
            FROM eventsql.consumer_partition p
            CROSS JOIN LATERAL (
                SELECT n.consumed_events FROM eventsql.consumer_offset n
                WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
                ORDER BY n.commit_number DESC LIMIT 1) o
            WHERE p.consumer_id = ?""";

    private final String commit;
    private final String beginHandling;
    private final String beginHandlingOn;
    private final String commitHandled;
    private final String consumedEvents;

    public OffsetTable(SqlSchema schema) {
        commit = schema.sql(COMMIT);
        beginHandling = schema.sql(BEGIN_HANDLING);
        beginHandlingOn = schema.sql(BEGIN_HANDLING_ON);
        commitHandled = schema.sql(COMMIT_HANDLED);
        consumedEvents = schema.sql(CONSUMED_EVENTS);
    }

    /**
     * The handled offsets of one partition: from {@code fromOffset} to {@code toOffset}, exclusive.
     *
     * @param events the number of events between them: fewer than offsets where events are missing from the log
     */
    public record Handled(int partition, long epoch, long fromOffset, long toOffset, long events) {}

    /** The handled offsets of partitions of one consumer. */
    public record OfConsumer(int consumerId, List<Handled> handled) {}

    /**
     * Commits offsets, each only if the partition's epoch and previous offset are still the given ones.
     *
     * @param incarnation that of the database when the partitions were taken; {@code null}: not compared
     * @return the partitions that were committed; the others were lost to another member
     */
    public Set<Integer> commit(
            Connection connection, @Nullable String incarnation, int consumerId, List<Handled> handled)
            throws SQLException {
        return commit(connection, incarnation, List.of(new OfConsumer(consumerId, handled)))
                .getOrDefault(consumerId, Set.of());
    }

    /**
     * Commits offsets of several consumers, as {@link #commit(Connection, String, int, List)} does.
     *
     * @param commits one of each consumer
     * @return the partitions that were committed, by the id of their consumer
     */
    public Map<Integer, Set<Integer>> commit(
            Connection connection, @Nullable String incarnation, List<OfConsumer> commits) throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        List<Handled> all =
                commits.stream().flatMap(one -> one.handled().stream()).toList();
        int[] consumers = commits.stream()
                .flatMapToInt(one -> one.handled().stream().mapToInt(handled -> one.consumerId()))
                .toArray();
        try (PreparedStatement statement = connection.prepareStatement(commit)) {
            statement.setString(1, incarnation);
            statement.setArray(2, pg.createArrayOf("int4", consumers));
            statement.setArray(
                    3,
                    pg.createArrayOf(
                            "int4", all.stream().mapToInt(Handled::partition).toArray()));
            statement.setArray(
                    4,
                    pg.createArrayOf(
                            "int8", all.stream().mapToLong(Handled::epoch).toArray()));
            statement.setArray(
                    5,
                    pg.createArrayOf(
                            "int8", all.stream().mapToLong(Handled::fromOffset).toArray()));
            statement.setArray(
                    6,
                    pg.createArrayOf(
                            "int8", all.stream().mapToLong(Handled::toOffset).toArray()));
            statement.setArray(
                    7,
                    pg.createArrayOf(
                            "int8", all.stream().mapToLong(Handled::events).toArray()));
            Map<Integer, Set<Integer>> committed = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    committed
                            .computeIfAbsent(rows.getInt(1), consumer -> new HashSet<>())
                            .add(rows.getInt(2));
                }
            }
            return committed;
        }
    }

    /** Returns by partition how many events the consumer has consumed: each commit adds its events, a seek keeps the count. */
    public Map<Integer, Long> consumedEvents(Connection connection, int consumerId) {
        return Jooq.using(connection)
                .fetch(consumedEvents, consumerId)
                .intoMap(r -> r.get(0, Integer.class), r -> r.get(1, Long.class));
    }

    /**
     * Begins to handle events in the caller's transaction: takes a shared advisory lock, by which a member that takes
     * the partition finds the transaction, and sets its idle timeout. The {@code transaction_timeout} of the role or the
     * database, which closes the connection, does not apply: the handler has a timeout of its own.
     *
     * @param token identifies this transaction
     */
    public void beginHandling(Connection connection, int consumerId, int partition, String token, long idleMs)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(beginHandling)) {
            statement.setInt(1, consumerId);
            statement.setInt(2, partition);
            statement.setString(3, token);
            statement.setLong(4, idleMs);
            statement.execute();
        }
    }

    /**
     * Begins to handle events on a connection that the library did not choose.
     *
     * @return whether the connection is to this shard
     */
    public boolean beginHandlingOn(
            UUID cluster, int shard, Connection connection, int consumerId, int partition, String token, long idleMs)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(beginHandlingOn)) {
            statement.setObject(1, cluster);
            statement.setInt(2, shard);
            statement.setInt(3, consumerId);
            statement.setInt(4, partition);
            statement.setString(5, token);
            statement.setLong(6, idleMs);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean(1);
            }
        }
    }

    /**
     * Commits the offset, as the last statement of such a transaction.
     *
     * @param incarnation that of the database when the partition was taken
     * @param idleMs the idle timeout of the transaction from now on
     * @return {@code false} if the partition was lost; the caller must roll back
     * @throws SQLException with state {@link SqlErrors#HANDLER_ENDED_TRANSACTION} if this is another transaction
     */
    public boolean commitHandled(
            Connection connection, String incarnation, int consumerId, Handled handled, String token, long idleMs)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(commitHandled)) {
            statement.setString(1, incarnation);
            statement.setInt(2, consumerId);
            statement.setInt(3, handled.partition());
            statement.setLong(4, handled.epoch());
            statement.setLong(5, handled.fromOffset());
            statement.setLong(6, handled.toOffset());
            statement.setLong(7, handled.events());
            statement.setString(8, token);
            statement.setLong(9, idleMs);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean(1);
            }
        }
    }
}
