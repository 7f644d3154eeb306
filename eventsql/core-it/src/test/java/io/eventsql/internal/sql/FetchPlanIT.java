package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Plans;
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
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: the cost of a fetch, of reading the heads and of an append does not depend on statistics, on how much is
 * stored, or on dead row versions that an old snapshot keeps. Method: blocks are counted, not time. auto_explain shows
 * the plans inside of {@code fetch_v2} and of a stream's fetch function, on a stream that was never analyzed and on one that
 * was analyzed while it was almost empty.
 */
@Timeout(180)
class FetchPlanIT {
    private static final int EVENTS = 50_000;
    private static final int SEGMENT_SIZE = 30_000;

    private static final Pattern ORDER_BY = Pattern.compile("ORDER BY (e\\.)?event_offset");

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
            prepare(stream);
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
        "fetch_v2, never, 10",
        "fetch_v2, never, 1000",
        "fetch_v2, never, 10000",
        "fetch_v2, early, 10",
        "fetch_v2, early, 1000",
        "fetch_v2, early, 10000",
        "events_never__fetch, never, 10",
        "events_never__fetch, never, 1000",
        "events_never__fetch, never, 10000",
        "events_early__fetch, early, 10",
        "events_early__fetch, early, 1000",
        "events_early__fetch, early, 10000"
    })
    void fetch_anyPageSize_isAnIndexScanThatReadsItsPageAlone(String function, String stream, int pageEvents)
            throws SQLException {
        assertThat(Sql.query(
                        database,
                        "SELECT relname FROM pg_stat_user_tables WHERE relname ~ ? AND"
                                + " (last_autoanalyze IS NOT NULL OR last_analyze IS NOT NULL)",
                        "^events_" + stream + "__p0_s[01]$"))
                .isEqualTo(stream.equals("never") ? List.of() : List.of("events_early__p0_s0"));
        double rowsPerBlock = SEGMENT_SIZE * 8192.0 / relationSize("events_" + stream + "__p0_s0");
        try (Connection connection = explaining()) {
            for (int from : new int[] {0, 5, 12_500, 24_990, 29_990, SEGMENT_SIZE, 42_500}) {
                List<String> plans = new ArrayList<>();
                int rows = fetch(connection, function, stream, from, pageEvents, 1L << 30, plans);
                assertThat(rows).isEqualTo(Math.min(pageEvents, EVENTS - from));
                assertThat(plans).as("plans that read events").isNotEmpty().allSatisfy(plan -> {
                    assertThat(plan)
                            .containsAnyOf(
                                    "Index Scan using events_" + stream + "__p0_s" + from / SEGMENT_SIZE + "_pkey",
                                    "Index Scan using events_" + stream + "__p0_s" + (from + rows - 1) / SEGMENT_SIZE
                                            + "_pkey")
                            .doesNotContain("Seq Scan", "Bitmap", "Sort", "Gather");
                    assertThat(Plans.blocks(plan)).as(plan).isLessThan((long) (3 * rows / rowsPerBlock) + 15);
                });
            }
        }
    }

    @Test
    void fetch_pageBoundedInBytes_readsNoMoreThanThePage() throws SQLException {
        try (Connection connection = explaining()) {
            List<String> plans = new ArrayList<>();
            int rows = fetch(connection, "fetch_v2", "never", 30_000, 1_000, 20_000, plans);
            assertThat(rows).isBetween(200, 300);
            assertThat(plans).isNotEmpty().allSatisfy(plan -> {
                assertThat(plan).contains("Index Scan").doesNotContain("Seq Scan", "Bitmap", "Sort");
                assertThat(Plans.blocks(plan)).as(plan).isLessThan(60);
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

    /** The plan of a query that a fetch function keeps is made while its segment has ten events, and known to have no more. */
    @Test
    void fetchFunction_segmentGrowsAfterItWasPlanned_staysAnIndexScan() throws SQLException {
        eventSql.createStream(StreamSpec.of("growing").withPartitions(1).withSegmentSize(SEGMENT_SIZE));
        Sql.execute(database, "ALTER TABLE eventsql.events_growing__p0_s0 SET (autovacuum_enabled = off)");
        publish("growing", 0, 10);
        Sql.execute(database, "ANALYZE eventsql.events_growing__p0_s0");
        prepare("growing");
        try (Connection connection = explaining()) {
            for (int i = 0; i < 10; i++) {
                assertThat(fetch(connection, "events_growing__fetch", "growing", 5, 10, 1L << 30, new ArrayList<>()))
                        .isEqualTo(5);
            }
            for (int from = 10; from < 25_000; from += 5_000) {
                publish("growing", from, Math.min(from + 5_000, 25_000));
            }
            for (int pageEvents : new int[] {10, 1_000, 5_000}) {
                List<String> plans = new ArrayList<>();
                int rows = fetch(connection, "events_growing__fetch", "growing", 15_000, pageEvents, 1L << 30, plans);
                assertThat(rows).isEqualTo(pageEvents);
                assertThat(plans).singleElement().satisfies(plan -> {
                    assertThat(plan)
                            .contains(
                                    "FROM eventsql.events_growing__p0_s0 e",
                                    "Index Scan using events_growing__p0_s0_pkey")
                            .doesNotContain("Seq Scan", "Bitmap", "Sort", "Gather");
                    assertThat(Plans.blocks(plan)).as(plan).isLessThan(rows / 10 + 20L);
                });
            }
        }
    }

    /**
     * Most index entries of the heads are of dead rows. The scan for a new one begins behind them, so that it ends at once where
     * nothing is new.
     */
    @ParameterizedTest
    @EnumSource(Storage.class)
    void fetchFunction_head_isSearchedFromTheRequestedOffsetOn(Storage storage) throws SQLException {
        String stream = "heads" + storage.name().toLowerCase(Locale.ROOT);
        eventSql.createStream(StreamSpec.of(stream).withPartitions(2).withStorage(storage));
        publish(stream, 0, 10);
        prepare(stream);
        try (Connection connection = explaining()) {
            List<String> plans = new ArrayList<>();
            String sql = "SELECT count(*) FROM eventsql.events_" + stream + "__fetch(NULL,"
                    + " (SELECT stream_id FROM eventsql.stream WHERE name = ?), ?, '{0,1}', '{0,1000}', 10, '{100000,100000}')";
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setString(1, stream);
                statement.setString(2, stream);
                statement.executeQuery();
                for (SQLWarning warning = statement.getWarnings();
                        warning != null;
                        warning = warning.getNextWarning()) {
                    if (warning.getMessage().contains("producer_batch b")) {
                        plans.add(warning.getMessage());
                    }
                }
            }
            assertThat(plans)
                    .singleElement()
                    .asString()
                    .contains("Index Only Scan Backward using producer_batch_head")
                    .containsPattern(
                            "Index Cond: \\(\\(stream_id = .*\\) AND \\(partition = .*\\) AND \\(next_offset > r\\.from_offset\\)\\)");
        }
    }

    private static void prepare(String stream) throws SQLException {
        assertThat(Sql.query(
                        database,
                        "SELECT eventsql.prepare_fetch_v1(stream_id) FROM eventsql.stream WHERE name = ?",
                        stream))
                .containsExactly("events_" + stream + "__fetch");
    }

    private static int fetch(
            Connection connection,
            String function,
            String stream,
            long from,
            int maxEvents,
            long maxBytes,
            List<String> plans)
            throws SQLException {
        String sql = "SELECT event_offset FROM eventsql." + function + "(NULL, "
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
                    if (result.getLong(1) != from + rows++) { // too many rows for an assertion each
                        throw new AssertionError("offset " + result.getLong(1) + " in row " + rows + " from " + from);
                    }
                }
            }
            for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) {
                if (warning.getMessage().contains("events_" + stream + "__p0_s")
                        && ORDER_BY.matcher(warning.getMessage()).find()) {
                    plans.add(warning.getMessage());
                }
            }
            return rows;
        }
    }

    private static long relationSize(String table) throws SQLException {
        return Sql.queryLong(database, "SELECT pg_relation_size('eventsql." + table + "')");
    }

    /**
     * Goal: an old snapshot (a forgotten session, pg_dump) does not make appends and reading the heads more expensive
     * with every append. Method: while a REPEATABLE READ transaction stays open, 1,000 batches are appended to one
     * partition, or to two; the blocks of the last ones are compared with those of the first, by each append function. Halfway
     * a vacuum, which can remove nothing, tells the planner how few rows are alive, as autovacuum would.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void append_oldSnapshotOpen_costsNoMoreWithEveryAppend(int partitions) throws SQLException {
        String stream = "hot" + partitions;
        eventSql.createStream(StreamSpec.of(stream).withPartitions(partitions));
        int streamId =
                (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
        AppendStatement append = new AppendStatement(new SqlSchema(Settings.DEFAULT_SCHEMA));
        AppendStatement.Rows batch = oneEventEach(stream, streamId, partitions);
        UUID producer = UUID.randomUUID();
        try (Connection old = database.getConnection();
                Connection connection = database.getConnection()) {
            old.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            old.setAutoCommit(false);
            Sql.query(old, "SELECT count(*) FROM eventsql.producer_batch");

            long number = 0;
            for (; number < 20; number++) {
                append.execute(connection, producer, number + 1, MapFence.of(1), null, batch);
            }
            String toStream = "eventsql.append_v2_" + streamId + "(?, ?, 1, NULL, 5000, '" + stream + "', ";
            String toAll = "eventsql.append_v1(?, ?, 1, NULL, 5000, array_fill('" + stream + "'::text, ARRAY["
                    + partitions + "]), array_fill(" + streamId + ", ARRAY[" + partitions + "]), ";
            appendBlocks(connection, toAll, partitions, producer, ++number); // plans
            long toStreamBefore = appendBlocks(connection, toStream, partitions, producer, ++number);
            long toAllBefore = appendBlocks(connection, toAll, partitions, producer, ++number);
            long headsBefore = headsBlocks(connection, streamId);
            for (; number < 1_000; number++) {
                append.execute(connection, producer, number + 1, MapFence.of(1), null, batch);
                if (number == 500) {
                    Sql.execute(database, "VACUUM ANALYZE eventsql.producer_batch");
                }
            }
            long headsAfter = headsBlocks(connection, streamId);
            appendBlocks(connection, toAll, partitions, producer, ++number); // plans with the new statistics
            long toStreamAfter = appendBlocks(connection, toStream, partitions, producer, ++number);
            long toAllAfter = appendBlocks(connection, toAll, partitions, producer, ++number);
            old.rollback();

            int more = 20 * partitions;
            assertThat(headsAfter)
                    .as("heads, %d at first", headsBefore)
                    .isLessThanOrEqualTo(headsBefore + 5 * partitions);
            assertThat(toStreamAfter)
                    .as("append, %d at first", toStreamBefore)
                    .isLessThanOrEqualTo(toStreamBefore + more);
            assertThat(toAllAfter).as("append_v1, %d at first", toAllBefore).isLessThanOrEqualTo(toAllBefore + more);
        }
    }

    private static AppendStatement.Rows oneEventEach(String stream, int streamId, int partitions) {
        String[] streams = new String[partitions];
        Arrays.fill(streams, stream);
        int[] ids = new int[partitions];
        Arrays.fill(ids, streamId);
        int[] counts = new int[partitions];
        Arrays.fill(counts, 1);
        byte[][] values = new byte[partitions][1];
        return new AppendStatement.Rows(
                streams,
                ids,
                IntStream.range(0, partitions).toArray(),
                counts,
                new String[partitions],
                values,
                new String[partitions]);
    }

    /** The blocks that an append of an event to each partition reads, in a session that has planned its statements before. */
    private static long appendBlocks(Connection connection, String call, int partitions, UUID producer, long number)
            throws SQLException {
        String perPartition = call.replaceFirst("\\?", "'" + producer + "'").replaceFirst("\\?", "" + number)
                + "'{0,1}'::int[], '{1,1}'::int[], '{1,2}'::int[], '{0,0}'::int[],"
                + " '{NULL,NULL}'::text[], '{x,x}'::bytea[], '{NULL,NULL}'::text[])";
        return Plans.blocks(Plans.explain(
                connection,
                "SELECT " + (partitions == 2 ? perPartition : perPartition.replaceAll("\\{(\\w+),\\w+\\}", "{$1}"))));
    }

    private static long headsBlocks(Connection connection, int streamId) throws SQLException {
        String heads = "SELECT * FROM eventsql.heads_v1(NULL, ARRAY[" + streamId + "])";
        Plans.explain(connection, heads); // plans
        return Plans.blocks(Plans.explain(connection, heads));
    }
}
