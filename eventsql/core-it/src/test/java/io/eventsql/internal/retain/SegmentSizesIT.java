package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Segments of one partition that differ in size. */
@Timeout(120)
class SegmentSizesIT {

    private static TestCluster cluster;
    private static DataSource database;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k", "" + i))
                .toList();
    }

    private static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "" + i).toList();
    }

    private void publish(EventSql with, int from, int to) {
        with.publisher().publishAll(stream, events(from, to));
    }

    private void createStream(EventSql with, long segmentSize) {
        with.createStream(StreamSpec.of(stream).withPartitions(1).withSegmentSize(segmentSize));
    }

    private void update(String assignment) throws SQLException {
        Sql.execute(database, "UPDATE eventsql.stream SET " + assignment + " WHERE name = '" + stream + "'");
    }

    private String ensure(long events) throws SQLException {
        return Sql.query(
                        database,
                        "SELECT added || ' up to ' || spare_offset FROM eventsql.stream s, eventsql.ensure_segments_v1(NULL, s.stream_id, 0, ?)"
                                + " WHERE s.name = ?",
                        events,
                        stream)
                .getFirst();
    }

    private List<String> segments() throws SQLException {
        return Sql.query(
                database,
                "SELECT first_offset || '-' || end_offset FROM eventsql.segment JOIN eventsql.stream USING (stream_id)"
                        + " WHERE name = ? ORDER BY first_offset",
                stream);
    }

    @Test
    void segmentSize_changes_newSegmentsHaveItAndReadersSeeOneLog() throws SQLException {
        try (EventSql before = cluster.open()) {
            createStream(before, 1_000);
            for (int from = 0; from < 1_500; from += 100) {
                publish(before, from, from + 100);
            }
            await().untilAsserted(() -> assertThat(segments()).hasSize(3));
        }
        update("segment_size = 250");
        try (EventSql after = cluster.open()) {
            for (int from = 1_500; from < 4_000; from += 100) {
                publish(after, from, from + 100);
            }
            await().untilAsserted(() -> assertThat(segments())
                    .startsWith("0-1000", "1000-2000", "2000-3000", "3000-3250", "3250-3500", "3500-3750"));
            assertThat(after.read(new EventPosition(stream, 0, 0, 0), 5_000).stream()
                            .map(StoredEvent::text))
                    .isEqualTo(texts(0, 4_000));
            Handled handled = new Handled();
            try (Subscription ignored =
                    after.subscribe(ConsumerSpec.of(stream, "c").withPageEvents(700), handled::add)) {
                handled.awaitSize(4_000).assertOnceAndInOrder();
            }
            assertThat(handled.texts()).isEqualTo(texts(0, 4_000));
            assertThat(after.positions(stream, "c")).allMatch(position -> position.lag() == 0);
        }
    }

    /** A page that ended with its segment would take a round trip for each segment, however small. */
    @Test
    void fetch_smallSegments_fillsThePageFromSeveral() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 100);
        publish(eventSql, 0, 950);
        String fetch =
                "SELECT count(event_offset) FILTER (WHERE published_at IS NOT NULL) || ' up to ' || max(event_offset)"
                        + " || CASE WHEN bool_or(published_at IS NULL) THEN ', the head' ELSE '' END"
                        + " FROM eventsql.stream s, eventsql.fetch_v2(NULL, s.stream_id, s.name, ARRAY[0], ARRAY[?::bigint], ?,"
                        + " ARRAY[?::bigint]) WHERE s.name = ?";
        assertThat(Sql.query(database, fetch, 0L, 300, 1_000_000L, stream)).containsExactly("300 up to 299");
        assertThat(Sql.query(database, fetch, 50L, 300, 1_000_000L, stream)).containsExactly("300 up to 349");
        assertThat(Sql.query(database, fetch, 0L, 2_000, 10_000_000L, stream))
                .containsExactly("950 up to 950, the head");
        assertThat(Sql.query(database, fetch, 940L, 2_000, 10_000_000L, stream))
                .containsExactly("10 up to 950, the head");
        // An event has 4 bytes: the key and three digits.
        assertThat(Sql.query(database, fetch, 150L, 2_000, 400L, stream)).containsExactly("100 up to 249");
    }

    @Test
    void fetch_segmentIsMissingBetweenOthers_pageEndsBeforeItAndTheNextIsTheRangeWithoutEvents() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 100);
        publish(eventSql, 0, 450);
        Sql.execute(
                database, "DROP TABLE eventsql.events_" + stream + "__p0_s1, eventsql.events_" + stream + "__p0_s2");
        String fetch = "SELECT event_offset || CASE WHEN published_at IS NULL THEN ' ends' ELSE '' END"
                + " FROM eventsql.stream s, eventsql.fetch_v2(NULL, s.stream_id, s.name, ARRAY[0], ARRAY[?::bigint], 1000,"
                + " ARRAY[1000000]) WHERE s.name = ?";
        assertThat(Sql.query(database, fetch, 95L, stream)).containsExactly("95", "96", "97", "98", "99");
        assertThat(Sql.query(database, fetch, 100L, stream)).containsExactly("200 ends");

        ensure(0); // deletes the rows of the dropped tables
        assertThat(segments()).doesNotContain("100-200", "200-300").contains("300-400");
        assertThat(Sql.query(database, fetch, 120L, stream)).containsExactly("300 ends");
        assertThat(Sql.query(database, fetch, 449L, stream)).containsExactly("449", "450 ends");
    }

    @Test
    void newSegment_ofAQuietStream_isSizedByItsRate() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 10_000);
        publish(eventSql, 0, 1_000);
        for (int from = 1_000; from < 12_000; from += 1_000) {
            publish(eventSql, from, from + 1_000);
        }
        await().untilAsserted(() -> assertThat(segments()).hasSize(3));
        // 12,000 events in 3 days, and segments of an eighth of 8 days.
        Sql.execute(database, "UPDATE eventsql.events_" + stream + " SET published_at = now() - interval '3 days'");
        update("retention = '8 days'");
        assertThat(ensure(17_000)).isEqualTo("1 up to 30000");
        assertThat(segments().subList(0, 3)).containsExactly("0-10000", "10000-20000", "20000-30000");
        assertThat(segments().get(3)).matches("30000-3(39|40)\\d\\d");
    }

    /** A stream has some segments ahead of its head, however quiet it is. */
    @Test
    void newSegment_hardlyAnyEvents_hasAThousandAtLeast() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 10_000);
        publish(eventSql, 0, 10);
        Sql.execute(database, "UPDATE eventsql.events_" + stream + " SET published_at = now() - interval '3 days'");
        update("retention = '8 days'");
        assertThat(ensure(20_500)).isEqualTo("2 up to 21000");
        assertThat(segments()).containsExactly("0-10000", "10000-20000", "20000-21000", "21000-22000");
        assertThat(Sql.query(
                        database,
                        "SELECT number FROM eventsql.segment JOIN eventsql.stream USING (stream_id) WHERE name = ?"
                                + " ORDER BY first_offset",
                        stream))
                .containsExactly("0", "1", "2", "3");
    }

    /** A segment that is to end early has a constraint until it does; events that must go into it remove that. */
    @Test
    void publish_beyondTheAnnouncedEndOfASegment_removesTheConstraintAndIsStored() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 1_000);
        publish(eventSql, 0, 10);
        Sql.execute(
                database,
                "ALTER TABLE eventsql.events_" + stream + "__p0_s0 ADD CONSTRAINT eventsql_end"
                        + " CHECK (partition = 0 AND event_offset >= 0 AND event_offset < 30) NOT VALID");
        publish(eventSql, 10, 20);
        publish(eventSql, 20, 60);
        assertThat(eventSql.read(new EventPosition(stream, 0, 0, 0), 100)).hasSize(60);
        assertThat(Sql.queryLong(
                        database,
                        "SELECT count(*) FROM pg_constraint WHERE conname = 'eventsql_end' AND conrelid = 'eventsql.events_"
                                + stream + "__p0_s0'::regclass"))
                .isZero();
    }

    @Test
    void ensureSegments_roomForMany_addsTenPerCall() throws SQLException {
        EventSql eventSql = cluster.open();
        createStream(eventSql, 100);
        assertThat(ensure(2_450)).isEqualTo("10 up to 1100");
        assertThat(ensure(2_450)).isEqualTo("10 up to 2100");
        assertThat(ensure(2_450)).isEqualTo("4 up to 2500");
        assertThat(ensure(2_450)).isEqualTo("0 up to 2500");
        assertThat(ensure(0)).isEqualTo("0 up to 100");
    }
}
