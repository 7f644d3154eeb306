package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: the cost of a fetch, of reading the heads and of an append does not depend on statistics, on how much is
 * stored, or on dead row versions that an old snapshot keeps. Method: blocks are counted, not time. auto_explain shows
 * the plans inside of {@code fetch_v2} itself, on a stream that was never analyzed and on one that was analyzed while
 * it was almost empty.
 */
@Timeout(180)
class FetchPlanIT {
    private static final int EVENTS = 100_000;
    private static final int SEGMENT_SIZE = 60_000;
    private static final Pattern BLOCKS = Pattern.compile("Buffers: shared(?: hit=(\\d+))?(?: read=(\\d+))?");

    private static TestCluster cluster;
    private static DataSource database;
    private static EventSql eventSql;

    @BeforeAll
    static void fill() throws SQLException {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
        eventSql = cluster.open();
        for (String stream : List.of("never", "early")) {
            eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withSegmentSize(SEGMENT_SIZE));
            Sql.execute(
                    database,
                    "ALTER TABLE eventsql.events_" + stream + "__p0_s0 SET (autovacuum_enabled = off)",
                    "ALTER TABLE eventsql.events_" + stream + "__p0_s1 SET (autovacuum_enabled = off)");
            publish(stream, 0, 10);
        }
        Sql.execute(database, "ANALYZE eventsql.events_early__p0_s0");
        for (String stream : List.of("never", "early")) {
            for (int from = 10; from < EVENTS; from += 5_000) {
                publish(stream, from, Math.min(from + 5_000, EVENTS));
            }
        }
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private static void publish(String stream, int from, int to) {
        List<Event> events = IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("key-" + i % 100, "value ".repeat(12) + i))
                .toList();
        eventSql.publisher().publishAll(stream, events);
    }

    @ParameterizedTest
    @CsvSource({
        "never, 10",
        "never, 100",
        "never, 1000",
        "never, 5000",
        "never, 10000",
        "early, 10",
        "early, 100",
        "early, 1000",
        "early, 5000",
        "early, 10000"
    })
    void fetch_anyPageSize_isAnIndexScanThatReadsItsPageAlone(String stream, int pageEvents) throws SQLException {
        assertThat(Sql.query(
                        database,
                        "SELECT relname FROM pg_stat_user_tables WHERE relname ~ ? AND"
                                + " (last_autoanalyze IS NOT NULL OR last_analyze IS NOT NULL)",
                        "^events_" + stream + "__p0_s[01]$"))
                .isEqualTo(stream.equals("never") ? List.of() : List.of("events_early__p0_s0"));
        double rowsPerBlock = SEGMENT_SIZE * 8192.0 / relationSize("events_" + stream + "__p0_s0");
        try (Connection connection = explaining()) {
            for (int from : new int[] {0, 5, 25_000, 49_990, 59_990, SEGMENT_SIZE, 85_000}) {
                List<String> plans = new ArrayList<>();
                int rows = fetch(connection, stream, from, pageEvents, 1L << 30, plans);
                assertThat(rows).isEqualTo(Math.min(pageEvents, EVENTS - from));
                assertThat(plans).as("plans that read events").isNotEmpty().allSatisfy(plan -> {
                    assertThat(plan)
                            .containsAnyOf(
                                    "Index Scan using events_" + stream + "__p0_s" + from / SEGMENT_SIZE + "_pkey",
                                    "Index Scan using events_" + stream + "__p0_s" + (from + rows - 1) / SEGMENT_SIZE
                                            + "_pkey")
                            .doesNotContain("Seq Scan", "Bitmap", "Sort", "Gather");
                    assertThat(blocks(plan)).as(plan).isLessThan((long) (3 * rows / rowsPerBlock) + 15);
                });
            }
        }
    }

    @Test
    void fetch_pageBoundedInBytes_readsNoMoreThanThePage() throws SQLException {
        try (Connection connection = explaining()) {
            List<String> plans = new ArrayList<>();
            int rows = fetch(connection, "never", 30_000, 1_000, 20_000, plans);
            assertThat(rows).isBetween(200, 300);
            assertThat(plans).isNotEmpty().allSatisfy(plan -> {
                assertThat(plan).contains("Index Scan").doesNotContain("Seq Scan", "Bitmap", "Sort");
                assertThat(blocks(plan)).as(plan).isLessThan(60);
            });
        }
    }

    /** A superuser's connection whose statements return the plans of all nested statements, as warnings. */
    private static Connection explaining() throws SQLException {
        PGSimpleDataSource admin = (PGSimpleDataSource) TestCluster.server().adminDataSource();
        Connection connection = DriverManager.getConnection(
                database.unwrap(com.zaxxer.hikari.HikariDataSource.class)
                        .getDataSource()
                        .unwrap(PGSimpleDataSource.class)
                        .getUrl(),
                admin.getUser(),
                admin.getPassword());
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET random_page_cost = 4"); // PostgreSQL's default, which favours other plans
            statement.execute("LOAD 'auto_explain'");
            for (String setting : List.of(
                    "log_min_duration = 0",
                    "log_nested_statements = on",
                    "log_analyze = on",
                    "log_buffers = on",
                    "log_timing = off",
                    "log_level = notice")) {
                statement.execute("SET auto_explain." + setting);
            }
        }
        return connection;
    }

    private static int fetch(
            Connection connection, String stream, long from, int maxEvents, long maxBytes, List<String> plans)
            throws SQLException {
        String sql = "SELECT event_offset FROM eventsql.fetch_v2(NULL, "
                + "(SELECT stream_id FROM eventsql.stream WHERE name = ?), ?, ARRAY[0], ARRAY[?], ?, ARRAY[?])"
                + " WHERE published_at IS NOT NULL";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, stream);
            statement.setString(2, stream);
            statement.setLong(3, from);
            statement.setInt(4, maxEvents);
            statement.setLong(5, maxBytes);
            int rows = 0;
            try (ResultSet result = statement.executeQuery()) {
                while (result.next()) {
                    assertThat(result.getLong(1)).isEqualTo(from + rows++);
                }
            }
            for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) {
                if (warning.getMessage().contains("events_" + stream + "__p0_s")
                        && warning.getMessage().contains("ORDER BY event_offset")) {
                    plans.add(warning.getMessage());
                }
            }
            return rows;
        }
    }

    private static long blocks(String plan) {
        Matcher matcher = BLOCKS.matcher(plan);
        assertThat(matcher.find()).as(plan).isTrue();
        return (matcher.group(1) == null ? 0 : Long.parseLong(matcher.group(1)))
                + (matcher.group(2) == null ? 0 : Long.parseLong(matcher.group(2)));
    }

    private static long relationSize(String table) throws SQLException {
        return Sql.queryLong(database, "SELECT pg_relation_size('eventsql." + table + "')");
    }

    /**
     * Goal: an old snapshot (a forgotten session, pg_dump) does not make appends and reading the heads more expensive
     * with every append. Method: while a REPEATABLE READ transaction stays open, 5,000 batches are appended to one
     * partition; the blocks of the last ones are compared with those of the first. Halfway a vacuum, which can remove
     * nothing, tells the planner how few rows are alive, as autovacuum would.
     */
    @Test
    void append_oldSnapshotOpen_costsNoMoreWithEveryAppend() throws SQLException {
        eventSql.createStream(StreamSpec.of("hot").withPartitions(1));
        int streamId = (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = 'hot'");
        AppendStatement append = new AppendStatement(new SqlSchema(Settings.DEFAULT_SCHEMA));
        UUID producer = UUID.randomUUID();
        try (Connection old = database.getConnection();
                Connection connection = database.getConnection()) {
            old.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            old.setAutoCommit(false);
            Sql.query(old, "SELECT count(*) FROM eventsql.producer_batch");

            long number = 0;
            for (; number < 20; number++) {
                append.execute(connection, producer, number + 1, 1, null, oneEvent(streamId));
            }
            long appendBefore = appendBlocks(connection, producer, ++number, streamId);
            long headsBefore = headsBlocks(connection, streamId);
            for (; number < 5_000; number++) {
                append.execute(connection, producer, number + 1, 1, null, oneEvent(streamId));
                if (number == 2_500) {
                    Sql.execute(database, "VACUUM ANALYZE eventsql.producer_batch");
                }
            }
            long headsAfter = headsBlocks(connection, streamId);
            long appendAfter = appendBlocks(connection, producer, ++number, streamId);
            old.rollback();

            assertThat(headsAfter).as("heads, %d at first", headsBefore).isLessThanOrEqualTo(headsBefore + 5);
            assertThat(appendAfter).as("append, %d at first", appendBefore).isLessThanOrEqualTo(appendBefore + 20);
        }
    }

    private static AppendStatement.Rows oneEvent(int streamId) {
        return new AppendStatement.Rows(
                new String[] {"hot"},
                new int[] {streamId},
                new int[] {0},
                new int[] {1},
                new int[] {1},
                new int[] {0},
                new String[] {null},
                new byte[][] {{1}},
                new String[] {null});
    }

    /** The blocks that an append reads, in a session that has planned its statements before. */
    private static long appendBlocks(Connection connection, UUID producer, long number, int streamId)
            throws SQLException {
        return blocks(explain(
                connection,
                "SELECT eventsql.append_v1('" + producer + "', " + number + ", 1, NULL, 5000, ARRAY['hot'], ARRAY["
                        + streamId
                        + "], ARRAY[0], ARRAY[1], ARRAY[1], ARRAY[0], ARRAY[NULL::text], ARRAY[''::bytea],"
                        + " ARRAY[NULL::text])"));
    }

    private static long headsBlocks(Connection connection, int streamId) throws SQLException {
        String heads = "SELECT * FROM eventsql.heads_v1(NULL, ARRAY[" + streamId + "])";
        explain(connection, heads); // plans
        return blocks(explain(connection, heads));
    }

    private static String explain(Connection connection, String sql) throws SQLException {
        return String.join("\n", Sql.query(connection, "EXPLAIN (ANALYZE, BUFFERS, COSTS off) " + sql));
    }
}
