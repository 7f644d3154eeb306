package io.eventsql.runner.limits;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/**
 * The least that a durable log with group commit does, in plain JDBC: each connection appends whatever waits to the
 * partition of its own with one prepared statement and one commit, and one thread reads and checks all partitions.
 * Without idempotence, leases, fencing, shards, or segments that follow each other. Thread-safe.
 */
final class GroupCommit implements PublishTarget, AutoCloseable {
    /** Events per append and per page. */
    private static final int EVENTS_MAX = 1_000;
    /** Makes pages larger. The latency is not measured. */
    private static final long FETCH_PAUSE_NANOS = Duration.ofMillis(5).toNanos();

    private static final long OFFSET_COMMIT_NANOS = Duration.ofMillis(100).toNanos();

    /** The tables: those of the events, one per partition, and those of the heads and of the consumer's offsets. */
    private record Tables(List<String> segments, String heads, String offsets) {}

    private record Waiting(byte[] value, CompletableFuture<Void> committed) {}

    private final LimitsContext context;
    private final Tables tables;
    private final ConsumedEvents consumed;
    private final BlockingQueue<Waiting> queue = new LinkedBlockingQueue<>();
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean closed;
    private volatile @Nullable Exception failure;

    private GroupCommit(LimitsContext context, Tables tables, ConsumedEvents consumed) {
        this.context = context;
        this.tables = tables;
        this.consumed = consumed;
    }

    /**
     * Returns the variant of one event per call through it, with a consumer, whose rate counts. Creates the tables. Those
     * of the events are segments of a stream, which is otherwise unused.
     */
    static Variant variant(LimitsContext context, int callers, int connections) throws SQLException {
        String stream = context.stream("group_commit_" + connections);
        context.eventSql()
                .createStream(
                        StreamSpec.of(stream).withPartitions(connections).withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        List<String> names = new ArrayList<>();
        for (int partition = 0; partition < connections; partition++) {
            names.add(log.firstSegment(partition));
        }
        Tables tables = new Tables(names, stream + "_head", stream + "_offset");
        try (Connection connection = context.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            for (String table : List.of(tables.heads, tables.offsets)) {
                statement.execute("CREATE TABLE " + table
                        + " (partition int PRIMARY KEY, next_offset bigint NOT NULL) WITH (fillfactor = 50)");
                statement.execute("INSERT INTO " + table + " SELECT generate_series(0, " + (connections - 1) + "), 0");
            }
        }
        String name = "bare group commit, " + connections + (connections == 1 ? " connection" : " connections");
        return new Variant(name, time -> {
            ConsumedEvents consumed = new ConsumedEvents(context);
            try (GroupCommit target = start(context, tables, consumed)) {
                PublishVariant publish = PublishVariant.named(name, context.load(target, 1, List.of()), callers);
                return consumed.during(() -> publish.run(time));
            }
        });
    }

    /** Starts the threads. The consumer begins at the heads. */
    private static GroupCommit start(LimitsContext context, Tables tables, ConsumedEvents consumed) {
        GroupCommit started = new GroupCommit(context, tables, consumed);
        for (int i = 0; i < tables.segments.size(); i++) {
            int partition = i;
            started.startThread(connection -> started.append(connection, partition));
        }
        started.startThread(started::consume);
        return started;
    }

    private interface Work {
        void run(Connection connection) throws SQLException, InterruptedException;
    }

    private void startThread(Work work) {
        threads.add(Thread.ofPlatform().name("group-commit").start(() -> {
            try (Connection connection = context.dataSource().getConnection()) {
                work.run(connection);
            } catch (InterruptedException e) {
                // Closed.
            } catch (SQLException | RuntimeException e) {
                failure = e;
                consumed.fail("The group commit failed: " + e);
                failWaiting(e);
            }
        }));
    }

    @Override
    public void publish(List<Event> events) {
        publishAsync(events).toCompletableFuture().join();
    }

    /** Publishes the one event of a call. */
    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        Waiting waiting = new Waiting(events.getFirst().value(), new CompletableFuture<>());
        queue.add(waiting);
        Exception failed = failure;
        if (failed != null) {
            failWaiting(failed);
        }
        return waiting.committed;
    }

    private void failWaiting(Exception e) {
        List<Waiting> waiting = new ArrayList<>();
        queue.drainTo(waiting);
        waiting.forEach(each -> each.committed.completeExceptionally(e));
    }

    private void append(Connection connection, int partition) throws SQLException, InterruptedException {
        // Indexes: the primary keys. Locks the head's row until the commit.
        String sql = """
                WITH head AS (
                    UPDATE %s SET next_offset = next_offset + ? WHERE partition = ?
                    RETURNING next_offset - ? AS first_offset)
                INSERT INTO %s (partition, event_offset, value, published_at)
                SELECT ?, head.first_offset + generate_series(0, ? - 1), unnest(?), clock_timestamp()
                FROM head""".formatted(tables.heads, tables.segments.get(partition));
        List<Waiting> batch = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            while (true) {
                batch.clear();
                batch.add(queue.take());
                queue.drainTo(batch, EVENTS_MAX - 1);
                int events = batch.size();
                statement.setInt(1, events);
                statement.setInt(2, partition);
                statement.setInt(3, events);
                statement.setInt(4, partition);
                statement.setInt(5, events);
                statement.setArray(
                        6,
                        connection.createArrayOf(
                                "bytea", batch.stream().map(Waiting::value).toArray(byte[][]::new)));
                if (statement.executeUpdate() != events) {
                    throw new IllegalStateException("Partition " + partition + " has no head");
                }
                batch.forEach(each -> each.committed.complete(null));
            }
        } catch (SQLException | RuntimeException e) {
            batch.forEach(each -> each.committed.completeExceptionally(e));
            throw e;
        }
    }

    private void consume(Connection connection) throws SQLException {
        List<PreparedStatement> pages = new ArrayList<>();
        long[] nextOffsets = new long[tables.segments.size()];
        try (Statement settings = connection.createStatement();
                PreparedStatement commit = connection.prepareStatement(
                        "UPDATE " + tables.offsets + " SET next_offset = ? WHERE partition = ?")) {
            // Without them, the plan depends on statistics: see docs/decisions/0002-planner-settings-in-functions.md.
            settings.execute("SET enable_sort = off");
            settings.execute("SET enable_bitmapscan = off");
            for (int partition = 0; partition < nextOffsets.length; partition++) {
                try (ResultSet head = settings.executeQuery(
                        "SELECT next_offset FROM " + tables.offsets + " WHERE partition = " + partition)) {
                    head.next();
                    nextOffsets[partition] = head.getLong(1);
                }
                // Index: the primary key. Takes no row lock.
                pages.add(connection.prepareStatement("""
                        SELECT event_offset, key, value, headers, published_at FROM %s
                        WHERE event_offset >= ? ORDER BY event_offset LIMIT %d""".formatted(tables.segments.get(partition), EVENTS_MAX)));
            }
            long committed = context.clock().nanos();
            while (!closed) {
                boolean full = false;
                for (int partition = 0; partition < nextOffsets.length; partition++) {
                    long first = nextOffsets[partition];
                    nextOffsets[partition] = consumePage(pages.get(partition), partition, first);
                    full |= nextOffsets[partition] == first + EVENTS_MAX;
                }
                if (context.clock().nanos() - committed > OFFSET_COMMIT_NANOS) {
                    commitOffsets(commit, nextOffsets);
                    committed = context.clock().nanos();
                }
                if (!full) {
                    context.clock().parkNanos(FETCH_PAUSE_NANOS);
                }
            }
            commitOffsets(commit, nextOffsets);
            settings.execute("RESET ALL");
        } finally {
            for (PreparedStatement page : pages) {
                page.close();
            }
        }
    }

    /** Returns the offset after the last event of the page. */
    private long consumePage(PreparedStatement page, int partition, long first) throws SQLException {
        page.setLong(1, first);
        long next = first;
        try (ResultSet rows = page.executeQuery()) {
            while (rows.next()) {
                long offset = rows.getLong(1);
                if (offset != next) {
                    consumed.fail("Partition " + partition + ": expected offset " + next + ", but read " + offset);
                }
                consumed.accept(partition, offset, rows.getBytes(3));
                next = offset + 1;
            }
        }
        return next;
    }

    private static void commitOffsets(PreparedStatement commit, long[] nextOffsets) throws SQLException {
        for (int partition = 0; partition < nextOffsets.length; partition++) {
            commit.setLong(1, nextOffsets[partition]);
            commit.setInt(2, partition);
            commit.executeUpdate();
        }
    }

    /** Ends the threads. No call may wait. */
    @Override
    public void close() {
        closed = true;
        try {
            threads.subList(0, threads.size() - 1).forEach(Thread::interrupt); // all but the consumer
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while the group commit ended", e);
        }
    }
}
