package io.eventsql.runner.plain;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** The threads of {@link GroupCommitProgram}: one for each connection that appends, and one that consumes. Thread-safe. */
final class GroupCommit implements AutoCloseable {
    /** Events per page. An append begins no further call when it has as many. */
    private static final int EVENTS_MAX = 1_000;
    /** Makes pages larger. The latency is not measured. */
    private static final long FETCH_PAUSE_NANOS = Duration.ofMillis(5).toNanos();

    private static final long OFFSET_COMMIT_NANOS = Duration.ofMillis(100).toNanos();

    private record Waiting(byte[][] values, CompletableFuture<Void> committed) {}

    private final PlainDatabase database;
    private final GroupCommitProgram.Tables tables;
    private final BlockingQueue<Waiting> queue = new LinkedBlockingQueue<>();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicLong consumed = new AtomicLong();
    private volatile boolean closed;
    private volatile @Nullable Exception failure;

    private GroupCommit(PlainDatabase database, GroupCommitProgram.Tables tables) {
        this.database = database;
        this.tables = tables;
    }

    /** Starts the threads on empty tables. */
    static GroupCommit start(PlainDatabase database, GroupCommitProgram.Tables tables) {
        GroupCommit started = new GroupCommit(database, tables);
        for (int i = 0; i < tables.segments().size(); i++) {
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
            try (Connection connection = database.connect()) {
                work.run(connection);
            } catch (InterruptedException e) {
                // Closed.
            } catch (SQLException | RuntimeException e) {
                failure = e;
                failWaiting(e);
            }
        }));
    }

    /** Publishes the events of a call. Returns when they are committed. */
    void publish(byte[][] values) {
        Waiting waiting = new Waiting(values, new CompletableFuture<>());
        queue.add(waiting);
        Exception failed = failure;
        if (failed != null) {
            failWaiting(failed);
        }
        waiting.committed.join();
    }

    /**
     * Returns the events that were read so far.
     *
     * @throws IllegalStateException if a thread has failed
     */
    long consumedEvents() {
        Exception failed = failure;
        if (failed != null) {
            throw new IllegalStateException("The group commit failed: " + failed, failed);
        }
        return consumed.get();
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
                FROM head""".formatted(tables.heads(), tables.segments().get(partition));
        List<Waiting> batch = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            while (true) {
                batch.clear();
                int events = 0;
                for (Waiting next = queue.take(); next != null; next = events < EVENTS_MAX ? queue.poll() : null) {
                    batch.add(next);
                    events += next.values.length;
                }
                statement.setInt(1, events);
                statement.setInt(2, partition);
                statement.setInt(3, events);
                statement.setInt(4, partition);
                statement.setInt(5, events);
                statement.setArray(
                        6,
                        connection.createArrayOf(
                                "bytea",
                                batch.stream()
                                        .flatMap(call -> Arrays.stream(call.values))
                                        .toArray(byte[][]::new)));
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
        long[] nextOffsets = new long[tables.segments().size()];
        try (Statement settings = connection.createStatement();
                PreparedStatement commit = connection.prepareStatement(
                        "UPDATE " + tables.offsets() + " SET next_offset = ? WHERE partition = ?")) {
            // Without them, the plan depends on statistics: see docs/decisions/0002-planner-settings-in-functions.md.
            settings.execute("SET enable_sort = off");
            settings.execute("SET enable_bitmapscan = off");
            for (String segment : tables.segments()) {
                // Index: the primary key. Takes no row lock.
                pages.add(connection.prepareStatement("""
                        SELECT event_offset, key, value, headers, published_at FROM %s
                        WHERE event_offset >= ? ORDER BY event_offset LIMIT %d""".formatted(segment, EVENTS_MAX)));
            }
            long committed = System.nanoTime();
            while (!closed) {
                boolean full = false;
                for (int partition = 0; partition < nextOffsets.length; partition++) {
                    long first = nextOffsets[partition];
                    nextOffsets[partition] = consumePage(pages.get(partition), partition, first);
                    full |= nextOffsets[partition] == first + EVENTS_MAX;
                }
                if (System.nanoTime() - committed > OFFSET_COMMIT_NANOS) {
                    commitOffsets(commit, nextOffsets);
                    committed = System.nanoTime();
                }
                if (!full) {
                    LockSupport.parkNanos(FETCH_PAUSE_NANOS);
                }
            }
            commitOffsets(commit, nextOffsets);
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
                    throw new IllegalStateException(
                            "Partition " + partition + ": expected offset " + next + ", but read " + offset);
                }
                next = offset + 1;
            }
        }
        consumed.addAndGet(next - first);
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
