package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.plain.CopyRowWriter;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;

/** Direct access to the tables of one stream by the names in the library's catalog. Thread-safe. */
final class StreamLog {
    /** Rows per COPY and transaction. */
    private static final int COPY_ROWS = 20_000;

    private static final Duration POLL = Duration.ofMillis(5);

    /** Longer than the maximum poll interval of the relay. */
    private static final Duration NO_PROGRESS = Duration.ofSeconds(30);

    private final DataSource dataSource;
    private final String stream;
    private final int streamId;
    private final String table;
    private final boolean hasBlocks;

    /** @param stream the name of an existing stream */
    StreamLog(DataSource dataSource, String stream) throws SQLException {
        this.dataSource = dataSource;
        this.stream = stream;
        Names names = Jdbc.rows(
                        dataSource,
                        "SELECT stream_id, table_name, to_regclass('eventsql.' || table_name || '__blocks') IS NOT NULL"
                                + " FROM eventsql.stream WHERE name = ?",
                        row -> new Names(row.getInt(1), row.getString(2), row.getBoolean(3)),
                        stream)
                .getFirst();
        this.streamId = names.streamId;
        this.table = names.table;
        this.hasBlocks = names.hasBlocks;
    }

    private record Names(int streamId, String table, boolean hasBlocks) {}

    /** Returns the stream's name. */
    String stream() {
        return stream;
    }

    /** Returns the name of the table or view with the events, with its schema. */
    String table() {
        return "eventsql." + table;
    }

    /** Returns the name of the topmost table that stores the events. */
    private String storedTable() {
        return hasBlocks ? table() + "__blocks" : table();
    }

    /**
     * The planner statistics of one segment.
     *
     * @param segment the name of the table
     * @param bytes the size of the table
     * @param reltuples the row count in {@code pg_class}; -1 if never vacuumed nor analyzed
     * @param analyzed the number of manual and automatic ANALYZE runs
     */
    record SegmentStatistics(String segment, long bytes, double reltuples, long analyzed) {}

    /** Returns the statistics of all segments that contain rows. */
    List<SegmentStatistics> statistics() throws SQLException {
        String sql = "SELECT c.oid::regclass::text, pg_relation_size(c.oid), c.reltuples,"
                + " coalesce(s.analyze_count + s.autoanalyze_count, 0)"
                + " FROM pg_partition_tree(?::regclass) t JOIN pg_class c ON c.oid = t.relid"
                + " LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid"
                + " WHERE t.isleaf AND pg_relation_size(c.oid) > 0 ORDER BY c.oid";
        return Jdbc.rows(
                dataSource,
                sql,
                row -> new SegmentStatistics(row.getString(1), row.getLong(2), row.getDouble(3), row.getLong(4)),
                storedTable());
    }

    /** Disables autovacuum for all existing segments, so that they are not analyzed. */
    void disableAutovacuum() throws SQLException {
        Jdbc.execute(
                dataSource,
                "DO $$ DECLARE segment regclass; BEGIN FOR segment IN SELECT relid FROM pg_partition_tree('"
                        + storedTable() + "') WHERE isleaf LOOP"
                        + " EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', segment); END LOOP; END $$");
    }

    /** Runs ANALYZE on all segments. */
    void analyze() throws SQLException {
        Jdbc.execute(dataSource, "ANALYZE " + storedTable());
    }

    /**
     * Appends events to a partition by binary COPY into its segments, far faster than publishers do. Then the log is as after
     * appends: with its head, and with the next segments. No publisher may append to the partition at the same time.
     *
     * @param run the run's id in the events, see {@link BenchmarkEvent}
     */
    void copy(String run, int partition, long events, StopSignal stop) throws SQLException {
        long left = events;
        while (left > 0 && !stop.isRaised()) {
            try (Connection connection = dataSource.getConnection()) {
                connection.setAutoCommit(false);
                try {
                    left -= copyOnce(connection, run, partition, left);
                    connection.commit();
                } finally {
                    connection.rollback();
                    connection.setAutoCommit(true);
                }
            }
        }
    }

    private record Room(String segment, long head, long end) {}

    private long copyOnce(Connection connection, String run, int partition, long eventsMax) throws SQLException {
        Room room = room(connection, partition);
        long events = Math.min(Math.min(COPY_ROWS, eventsMax), room.end - room.head);
        CopyRowWriter.copy(connection, "eventsql." + room.segment, run, partition, room.head, events);
        moveHead(connection, partition, room.head + events);
        return events;
    }

    /** Adds segments if they are due. */
    private Room room(Connection connection, int partition) throws SQLException {
        String sql = """
                SELECT g.table_name, h.next_offset, g.end_offset
                FROM eventsql.partition_head h
                CROSS JOIN LATERAL eventsql.add_segments_v1(?, h.partition, ?)
                CROSS JOIN LATERAL (
                    SELECT s.table_name, s.end_offset FROM eventsql.segment s
                    WHERE s.stream_id = ? AND s.partition = h.partition AND s.first_offset <= h.next_offset
                    ORDER BY s.first_offset DESC LIMIT 1) g
                WHERE h.stream = ? AND h.partition = ?""";
        return Jdbc.rows(
                        connection,
                        sql,
                        row -> new Room(row.getString(1), row.getLong(2), row.getLong(3)),
                        streamId,
                        (long) COPY_ROWS,
                        streamId,
                        stream,
                        partition)
                .getFirst();
    }

    private void moveHead(Connection connection, int partition, long head) throws SQLException {
        String sql = """
                UPDATE eventsql.producer_batch b SET next_offset = ?, published_at = clock_timestamp()
                WHERE b.stream_id = ? AND b.partition = ?""";
        if (Jdbc.execute(connection, sql, head, streamId, partition) != 1) {
            throw new IllegalStateException("Partition " + partition + " of " + stream + " has publishers");
        }
    }

    /** Returns the number of tables of the stream. */
    long tables() throws SQLException {
        return Jdbc.number(dataSource, "SELECT count(*) FROM pg_partition_tree(?::regclass)", storedTable());
    }

    /** Returns the size of the stream's tables with their indexes, in bytes. */
    long bytes() throws SQLException {
        return Jdbc.number(
                dataSource,
                "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(?::regclass) WHERE isleaf",
                storedTable());
    }

    /** Returns the sum of the partitions' heads. */
    long heads() throws SQLException {
        return Jdbc.number(dataSource, "SELECT sum(next_offset) FROM eventsql.partition_head WHERE stream = ?", stream);
    }

    /**
     * Waits until the sum of the heads has reached a number, or does not rise for a long time. Returns the sum. Events
     * published inside transactions arrive with a delay.
     *
     * @throws RunStoppedException after a stop signal
     */
    long awaitHeads(LimitsContext context, long expected) throws SQLException {
        return context.await(this::heads, expected, NO_PROGRESS, POLL);
    }

    /**
     * What one statement costs.
     *
     * @param locks the number of locks on relations that its transaction holds
     * @param micros the mean time of an execution in microseconds, with its planning
     */
    record StatementCost(long locks, double micros) {}

    /** Returns what it costs to append one event to partition 0. Nothing is stored. */
    StatementCost appendCost(int executions) throws SQLException {
        return cost(
                "SELECT eventsql.append_v1(gen_random_uuid(), 1, p.map_version, NULL, 0, ARRAY[s.name], ARRAY[s.stream_id],"
                        + " '{0}', '{1}', '{1}', '{0}', '{k}', ARRAY['\\x00'::bytea], '{NULL}')"
                        + " FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)"
                        + " WHERE s.name = ? AND p.partition = 0",
                executions);
    }

    /** Returns what it costs to fetch the last ten events of partition 0. */
    StatementCost fetchCost(int executions) throws SQLException {
        return cost(
                "SELECT count(f.*) FROM eventsql.partition_head h JOIN eventsql.stream s ON s.name = h.stream"
                        + " CROSS JOIN LATERAL eventsql.fetch_v2(NULL, s.stream_id, s.name, '{0}',"
                        + " ARRAY[h.next_offset - 10], 10, '{1000000}') f WHERE h.stream = ? AND h.partition = 0",
                executions);
    }

    private StatementCost cost(String sql, int executions) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql);
                PreparedStatement locks = connection.prepareStatement("SELECT count(*) FROM pg_locks l"
                        + " WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'"
                        + " AND l.relation <> 'pg_locks'::regclass")) {
            connection.setAutoCommit(false);
            try {
                statement.setString(1, stream);
                long held = 0;
                long nanos = 0;
                for (int i = 0; i < executions; i++) {
                    long start = System.nanoTime();
                    statement.executeQuery().close();
                    nanos += System.nanoTime() - start;
                    if (i == 0) {
                        try (ResultSet row = locks.executeQuery()) {
                            row.next();
                            held = row.getLong(1);
                        }
                    }
                    connection.rollback();
                }
                return new StatementCost(held, nanos / 1_000.0 / executions);
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        }
    }
}
