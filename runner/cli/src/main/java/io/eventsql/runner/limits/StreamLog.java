package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.load.StopSignal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import javax.sql.DataSource;

/** Direct access to the log of one stream by the catalog of its segments. Thread-safe. */
final class StreamLog {
    /** Rows per COPY and transaction. */
    private static final int COPY_ROWS = 20_000;

    private final DataSource dataSource;
    private final String stream;
    private final int streamId;
    private final String table;

    /** @param stream the name of an existing stream */
    StreamLog(DataSource dataSource, String stream) throws SQLException {
        this.dataSource = dataSource;
        this.stream = stream;
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(
                        "SELECT stream_id, table_name FROM eventsql.stream WHERE name = ?")) {
            statement.setString(1, stream);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                streamId = row.getInt(1);
                table = row.getString(2);
            }
        }
    }

    /** Returns the stream's name. */
    String stream() {
        return stream;
    }

    /** Returns the name of the table with the events, with its schema. */
    String table() {
        return "eventsql." + table;
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
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, streamId);
            statement.setLong(2, COPY_ROWS);
            statement.setInt(3, streamId);
            statement.setString(4, stream);
            statement.setInt(5, partition);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Room(row.getString(1), row.getLong(2), row.getLong(3));
            }
        }
    }

    private void moveHead(Connection connection, int partition, long head) throws SQLException {
        String sql = """
                UPDATE eventsql.producer_batch b SET next_offset = ?, published_at = clock_timestamp()
                WHERE b.stream_id = ? AND b.partition = ?""";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setLong(1, head);
            statement.setInt(2, streamId);
            statement.setInt(3, partition);
            if (statement.executeUpdate() != 1) {
                throw new IllegalStateException("Partition " + partition + " of " + stream + " has publishers");
            }
        }
    }

    /** Returns the number of tables of the stream. */
    long tables() throws SQLException {
        return number("SELECT count(*) FROM pg_partition_tree(?::regclass)", table());
    }

    /** Returns the size of the stream's tables with their indexes, in bytes. */
    long bytes() throws SQLException {
        return number(
                "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(?::regclass) WHERE isleaf", table());
    }

    /** Returns the sum of the partitions' heads. */
    long heads() throws SQLException {
        return number("SELECT sum(next_offset) FROM eventsql.partition_head WHERE stream = ?", stream);
    }

    /** Executes a query with one parameter and returns its number. */
    long number(String sql, String parameter) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, parameter);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1);
            }
        }
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
