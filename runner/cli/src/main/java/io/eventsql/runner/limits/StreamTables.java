package io.eventsql.runner.limits;

import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** Direct access to the tables of one stream, by the names in the library's catalog. Thread-safe. */
final class StreamTables {
    // Indexes: stream_name_unique and the primary key of segment. Takes no row lock.
    private static final String FIRST_SEGMENT = """
            SELECT g.table_name
            FROM eventsql.segment g
            JOIN eventsql.stream s USING (stream_id)
            WHERE s.name = ? AND g.partition = ? AND g.first_offset = 0""";

    private final DataSource dataSource;
    private final String stream;
    private final Storage storage;

    /** @param stream the name of an existing stream in the default schema */
    StreamTables(DataSource dataSource, String stream, Storage storage) {
        this.dataSource = dataSource;
        this.stream = stream;
        this.storage = storage;
    }

    /** Returns the topmost table. */
    private String table() {
        String name = qualified(StreamSpec.of(stream).tableName());
        return storage == Storage.BLOCKS ? name + "__blocks" : name;
    }

    /** The library's tables have names that need no quotes. */
    private static String qualified(String table) {
        return Settings.DEFAULT_SCHEMA + "." + table;
    }

    /** Returns the table of the first segment of a partition. */
    String firstSegment(int partition) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(FIRST_SEGMENT)) {
            statement.setString(1, stream);
            statement.setInt(2, partition);
            try (ResultSet row = statement.executeQuery()) {
                if (!row.next()) {
                    throw new IllegalStateException(
                            "partition " + partition + " of stream " + stream + " has no segment at offset 0");
                }
                return qualified(row.getString(1));
            }
        }
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
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, table());
            List<SegmentStatistics> segments = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    segments.add(
                            new SegmentStatistics(row.getString(1), row.getLong(2), row.getDouble(3), row.getLong(4)));
                }
            }
            return segments;
        }
    }

    /** Disables autovacuum for all existing segments, so that they are not analyzed. */
    void disableAutovacuum() throws SQLException {
        String sql = "SELECT t.relid::regclass::text FROM pg_partition_tree(?::regclass) t WHERE t.isleaf";
        List<String> segments = new ArrayList<>();
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, table());
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    segments.add(row.getString(1));
                }
            }
        }
        for (String segment : segments) {
            execute("ALTER TABLE " + segment + " SET (autovacuum_enabled = off)");
        }
    }

    /** Runs ANALYZE on all segments. */
    void analyze() throws SQLException {
        execute("ANALYZE " + table());
    }

    private void execute(String sql) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
