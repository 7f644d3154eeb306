package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.StreamsFetchStatement.StreamRequest;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Goal: a fetch from several streams returns for each what a fetch from that stream alone returns, whatever is asked for. */
class StreamsFetchIT {
    private static final int STREAMS = 4;
    private static final int PARTITIONS = 3;
    private static final FetchStatement FETCH = new FetchStatement(new SqlSchema(Settings.DEFAULT_SCHEMA));
    private static final StreamsFetchStatement FETCH_STREAMS =
            new StreamsFetchStatement(new SqlSchema(Settings.DEFAULT_SCHEMA));

    private static TestCluster cluster;
    private static DataSource database;
    private static EventSql eventSql;

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

    private static StreamSpec stream(int number, Storage storage) {
        return StreamSpec.of(storage.name().toLowerCase(Locale.ROOT) + number)
                .withPartitions(PARTITIONS)
                .withSegmentSize(100)
                .withStorage(storage);
    }

    private int streamId(StreamSpec stream) throws SQLException {
        return (int)
                Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream.name() + "'");
    }

    private void publish(StreamSpec stream, int events, String value) {
        eventSql.publisher()
                .publishAll(
                        stream.name(),
                        IntStream.range(0, events)
                                .mapToObj(i -> Event.ofText("key-" + i, value + i))
                                .toList());
    }

    private String incarnation() throws SQLException {
        return Sql.query(database, "SELECT eventsql.incarnation_v1()").getFirst();
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void execute_randomRequests_returnsWhatEachStreamReturns(Storage storage) throws SQLException {
        Random random = Seeds.random("StreamsFetchIT");
        List<StreamSpec> streams = new ArrayList<>();
        List<Integer> ids = new ArrayList<>();
        for (int number = 0; number < STREAMS; number++) {
            StreamSpec stream = stream(number, storage);
            eventSql.createStream(stream);
            streams.add(stream);
            ids.add(streamId(stream));
            publish(stream, random.nextInt(300), "small");
            publish(stream, random.nextInt(3), "large".repeat(1_000));
            publish(stream, random.nextInt(100), "small");
        }
        StreamSpec ofSmall = stream(STREAMS, storage);
        eventSql.createStream(ofSmall);
        streams.add(ofSmall);
        ids.add(streamId(ofSmall));
        publish(ofSmall, 200, "small");
        String table = streams.getFirst().tableName();
        if (storage == Storage.ROWS) {
            Sql.execute(database, "DELETE FROM eventsql." + table + " WHERE event_offset % 7 = 3");
            Sql.execute(
                    database,
                    "UPDATE eventsql." + table + " SET value = NULL, erased_at = now() WHERE event_offset % 5 = 0");
        }
        Map<String, Long> heads = new HashMap<>();
        for (String head : Sql.query(
                database,
                "SELECT stream_id || '|' || partition || '|' || max(next_offset) FROM eventsql.producer_batch"
                        + " GROUP BY stream_id, partition")) {
            int end = head.lastIndexOf('|');
            heads.put(head.substring(0, end), Long.valueOf(head.substring(end + 1)));
        }
        String incarnation = incarnation();
        int events = 0;
        try (Connection connection = database.getConnection()) {
            for (int i = 0; i < 30; i++) {
                List<StreamRequest> requests = new ArrayList<>();
                List<FetchedPage> expected = new ArrayList<>();
                List<Long> headOfEach = new ArrayList<>();
                for (int n = random.nextInt(20); n >= 0; n--) {
                    int number = random.nextInt(streams.size());
                    StreamSpec stream = streams.get(number);
                    int maxEvents = 1 + random.nextInt(random.nextBoolean() ? 10 : 150);
                    int partition = random.nextInt(PARTITIONS);
                    long head = heads.getOrDefault(ids.get(number) + "|" + partition, 0L);
                    long offset = random.nextBoolean() ? random.nextInt(150) : Math.max(0, head - random.nextInt(5));
                    Request request = new Request(
                            partition, offset, random.nextBoolean() ? 1_000_000 : 1 + random.nextInt(20_000));
                    headOfEach.add(head);
                    requests.add(new StreamRequest(ids.get(number), stream.name(), maxEvents, request));
                    expected.addAll(FETCH.execute(
                            connection, incarnation, ids.get(number), stream, 0, List.of(request), maxEvents));
                }
                List<FetchedPage> actual = FETCH_STREAMS.execute(connection, incarnation, storage, 0, requests);
                assertThat(actual).hasSameSizeAs(expected);
                for (int page = 0; page < actual.size(); page++) {
                    assertSamePage(actual.get(page), expected.get(page), headOfEach.get(page));
                    events += actual.get(page).events().size();
                }
            }
        }
        assertThat(events).isPositive();
    }

    /** A page that its number of bytes ends just at the head may say that it ends there, or that there may be more. */
    private static void assertSamePage(FetchedPage actual, FetchedPage expected, long head) {
        assertThat(actual.firstOffset()).isEqualTo(expected.firstOffset());
        assertThat(actual.nextOffset()).isEqualTo(expected.nextOffset());
        if (expected.endsAtHead()) {
            assertThat(actual.endsAtHead()).isTrue();
        } else if (actual.endsAtHead()) {
            assertThat(actual.nextOffset()).isEqualTo(head);
            assertThat(actual.events()).isNotEmpty();
        }
        assertThat(actual.bytes()).isEqualTo(expected.bytes());
        assertThat(actual.events()).hasSameSizeAs(expected.events());
        for (int i = 0; i < actual.events().size(); i++) {
            assertThat(actual.events().get(i))
                    .usingRecursiveComparison()
                    .isEqualTo(expected.events().get(i));
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void execute_idOfAnotherStreamOrIncarnation_isRejected(Storage storage) throws SQLException {
        StreamSpec stream = stream(0, storage);
        eventSql.createStream(stream);
        List<StreamRequest> ofAnother =
                List.of(new StreamRequest(streamId(stream), "another", 10, new Request(0, 0, 1_000)));
        List<StreamRequest> ofUnknown =
                List.of(new StreamRequest(streamId(stream) + 100, "unknown", 10, new Request(0, 0, 1_000)));
        String incarnation = incarnation();
        try (Connection connection = database.getConnection()) {
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> FETCH_STREAMS.execute(connection, incarnation, storage, 0, ofAnother))
                    .extracting(SqlErrors::state)
                    .isEqualTo(SqlErrors.OTHER_STREAM);
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> FETCH_STREAMS.execute(connection, "other", storage, 0, ofUnknown))
                    .extracting(SqlErrors::state)
                    .isEqualTo(SqlErrors.OTHER_INCARNATION);
            assertThat(FETCH_STREAMS.execute(connection, incarnation, storage, 0, ofUnknown))
                    .allMatch(FetchedPage::isEmpty);
        }
    }
}
