package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: the fetch function of a stream returns what {@code fetch_v2} returns, whatever has become of the stream and its
 * segments since the function was created and since a connection has planned its queries.
 */
@Timeout(180)
class FetchFunctionIT {
    private static final int PARTITIONS = 3;
    private static final int SEGMENT_SIZE = 100;
    private static final FetchStatement FETCH = new FetchStatement(new SqlSchema(Settings.DEFAULT_SCHEMA));

    private static TestCluster cluster;
    private static DataSource database;
    private static EventSql eventSql;

    private final String stream = TestStreams.newName();
    private final String function = "events_" + stream + "__fetch";

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
        eventSql = cluster.open();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    @BeforeEach
    void createStream() {
        eventSql.createStream(StreamSpec.of(stream).withPartitions(PARTITIONS).withSegmentSize(SEGMENT_SIZE));
    }

    private int streamId() throws SQLException {
        return (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
    }

    private String prepare() throws SQLException {
        try (Connection connection = database.getConnection()) {
            return FETCH.prepare(connection, streamId()).orElse("none");
        }
    }

    private void publish(int events, String value) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, events)
                                .mapToObj(i -> Event.ofText("key-" + i, value + i))
                                .toList());
    }

    private List<String> rows(
            Connection connection, String function, int streamId, int[] offsets, int maxEvents, int maxBytes)
            throws SQLException {
        String array = IntStream.of(offsets).mapToObj(Integer::toString).collect(Collectors.joining(",", "{", "}"));
        return Sql.query(connection, """
                SELECT concat_ws(' ', page, event_offset, key, md5(value), headers, published_at)
                FROM eventsql.%s(NULL, ?, ?, '{0,1,2}', ?::bigint[], ?, array_fill(?::bigint, ARRAY[3]))""".formatted(function), streamId, stream, array, maxEvents, maxBytes);
    }

    private List<String> segments() throws SQLException {
        return Sql.query(
                database,
                "SELECT table_name FROM eventsql.segment WHERE stream_id = ? ORDER BY table_name",
                streamId());
    }

    /** One random change: to the stream, its segments, or its function. */
    private void change(Random random) throws SQLException {
        List<String> segments = segments();
        String segment = "eventsql." + segments.get(random.nextInt(segments.size()));
        switch (random.nextInt(12)) {
            case 0, 1, 2, 3 -> publish(1 + random.nextInt(60), "small");
            case 4 -> publish(1 + random.nextInt(3), "large".repeat(1_000));
            case 5, 6 -> prepare();
            case 7 ->
                Sql.execute(database, "DELETE FROM " + segment + " WHERE event_offset % 7 = " + random.nextInt(7));
            case 8 -> Sql.execute(database, "TRUNCATE " + segment);
            case 9 ->
                Sql.execute(
                        database,
                        "UPDATE " + segment + " SET value = NULL, erased_at = now() WHERE event_offset % 5 = 0");
            case 10 -> { // as a merge does: another table in place of one
                String name = segments.get(random.nextInt(segments.size()));
                Sql.execute(
                        database,
                        "ALTER TABLE eventsql." + name + " RENAME TO " + name + "_m",
                        "UPDATE eventsql.segment SET table_name = '" + name + "_m' WHERE table_name = '" + name + "'");
            }
            default ->
                Sql.query(database, "SELECT added FROM eventsql.ensure_segments_v1(NULL, ?, 0, 100)", streamId());
        }
    }

    @Test
    void fetchFunction_randomChanges_returnsWhatFetchReturns() throws SQLException {
        Random random = Seeds.random("FetchFunctionIT");
        publish(100, "first");
        prepare();
        int planned = 0;
        try (Connection connection = database.getConnection()) {
            for (int i = 0; i < 150; i++) {
                change(random);
                int streamId = streamId();
                List<Integer> heads = Sql.query(
                                database,
                                "SELECT next_offset FROM eventsql.partition_head WHERE stream = ? ORDER BY partition",
                                stream)
                        .stream()
                        .map(Integer::valueOf)
                        .toList();
                for (int fetch = 0; fetch < 5; fetch++) {
                    int[] offsets = heads.stream()
                            .mapToInt(head -> Math.max(0, head - random.nextInt(random.nextBoolean() ? 5 : 200) + 1))
                            .toArray();
                    int maxEvents = 1 + random.nextInt(random.nextBoolean() ? 20 : 150);
                    int maxBytes = random.nextBoolean() ? 1_000_000 : 1 + random.nextInt(20_000);
                    List<String> expected = rows(connection, "fetch_v2", streamId, offsets, maxEvents, maxBytes);
                    List<String> actual = rows(connection, function, streamId, offsets, maxEvents, maxBytes);
                    assertSamePages(actual, expected);
                    planned += expected.size();
                }
            }
        }
        assertThat(planned).isPositive();
    }

    /** A page with gaps may end before it is full; what it has is the beginning of the other then. */
    private static void assertSamePages(List<String> actual, List<String> expected) {
        for (int page = 0; page < PARTITIONS; page++) {
            List<String> rows = ofPage(actual, page);
            List<String> all = ofPage(expected, page);
            assertThat(rows).isEqualTo(all.subList(0, Math.min(rows.size(), all.size())));
            assertThat(rows.isEmpty()).isEqualTo(all.isEmpty());
            if (rows.size() < all.size()) {
                long first = offset(all.getFirst());
                assertThat(offset(rows.getLast()) - first + 1)
                        .as("gaps in %s", rows)
                        .isGreaterThan(rows.size() - 1L);
                assertThat(offset(all.get(rows.size())) / SEGMENT_SIZE)
                        .isGreaterThan(offset(rows.getLast()) / SEGMENT_SIZE);
            }
        }
    }

    /** The rows of a page; without the end of its range where that follows from its last event. */
    private static List<String> ofPage(List<String> rows, int page) {
        List<String> ofPage = rows.stream()
                .filter(row -> row.startsWith(page + " ") || row.startsWith(-1 - page + " "))
                .toList();
        boolean hasEnd = ofPage.size() > 1
                && ofPage.getLast().split(" ").length == 2
                && offset(ofPage.getLast()) == offset(ofPage.get(ofPage.size() - 2)) + 1;
        return hasEnd ? ofPage.subList(0, ofPage.size() - 1) : ofPage;
    }

    private static long offset(String row) {
        return Long.parseLong(row.split(" ")[1]);
    }

    @Test
    void fetchFunction_streamIsDeletedAndCreatedAgain_readsTheNewOne() throws SQLException {
        publish(30, "old");
        assertThat(prepare()).contains(function);
        int oldId = streamId();
        try (Connection connection = database.getConnection()) {
            assertThat(rows(connection, function, oldId, new int[3], 100, 1_000_000))
                    .isNotEmpty();
            eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> rows(connection, function, oldId, new int[3], 100, 1_000_000))
                    .matches(FetchStatement::isCausedByFunction);

            createStream();
            publish(20, "new");
            prepare();
            int newId = streamId();
            assertThat(newId).isNotEqualTo(oldId);
            assertThat(rows(connection, function, oldId, new int[3], 100, 1_000_000))
                    .as("nothing, as from fetch_v2")
                    .isEqualTo(rows(connection, "fetch_v2", oldId, new int[3], 100, 1_000_000))
                    .noneMatch(row -> row.contains("key-"));
            assertThat(rows(connection, function, newId, new int[3], 100, 1_000_000))
                    .isNotEmpty()
                    .isEqualTo(rows(connection, "fetch_v2", newId, new int[3], 100, 1_000_000));
        }
    }

    @Test
    void fetchFunction_otherStreamOrIncarnation_isRejectedAsByFetch() throws SQLException {
        publish(10, "v");
        String statement = prepare();
        int id = streamId();
        List<FetchStatement.Request> request = List.of(new FetchStatement.Request(0, 0, 1_000));
        try (Connection connection = database.getConnection()) {
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() ->
                            FETCH.execute(statement, connection, null, id, StreamSpec.of("other"), 0, request, 10))
                    .returns(SqlErrors.OTHER_STREAM, SQLException::getSQLState);
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() ->
                            FETCH.execute(statement, connection, "another", id, StreamSpec.of(stream), 0, request, 10))
                    .returns(SqlErrors.OTHER_INCARNATION, SQLException::getSQLState);
        }
    }

    @Test
    void prepare_manySessionsAndNewSegments_eachCallSucceedsAndTheLastKnowsAllSegments() throws Exception {
        publish(10, "v");
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            for (int round = 0; round < 5; round++) {
                publish(SEGMENT_SIZE * PARTITIONS, "v");
                CountDownLatch start = new CountDownLatch(8);
                List<Future<String>> calls = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    calls.add(threads.submit(() -> {
                        start.countDown();
                        start.await();
                        return prepare();
                    }));
                }
                for (Future<String> call : calls) {
                    assertThat(call.get()).matches(result -> result.equals("none") || result.contains("__fetch"));
                }
            }
        } finally {
            threads.shutdownNow();
        }
        prepare();
        String source = Sql.query(database, "SELECT prosrc FROM pg_proc WHERE proname = ?", function)
                .getFirst();
        List<String> ofHeads = Sql.query(
                database,
                "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.partition_head h ON h.partition = g.partition"
                        + " AND h.next_offset >= g.first_offset AND h.next_offset < g.end_offset WHERE h.stream = ?"
                        + " AND g.stream_id = ?",
                stream,
                streamId());
        assertThat(ofHeads)
                .hasSize(PARTITIONS)
                .allSatisfy(table -> assertThat(source).contains("FROM eventsql." + table + " e"));
    }

    @Test
    void prepare_tooManyPartitions_streamHasNoFunction() throws SQLException {
        eventSql.createStream(StreamSpec.of("wide").withPartitions(51).withSegmentSize(100));
        assertThat(Sql.query(
                        database,
                        "SELECT coalesce(eventsql.prepare_fetch_v1(stream_id), 'none') FROM eventsql.stream"
                                + " WHERE name = 'wide'"))
                .containsExactly("none");
    }
}
