package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Aggregate;
import io.eventsql.Compaction;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyEvents;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: the events of a key are read completely and in order, whatever the storage and the number of segments, also while segments
 * expire, are merged, or lose what is erased.
 */
@Timeout(120)
class KeyEventsIT {
    private static TestCluster cluster;
    private static EventSql eventSql;
    private static EventPublisher publisher;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open(settings -> settings.maxBatchEvents(5_000));
        publisher = eventSql.publisher();
    }

    private StreamSpec indexed(Storage storage) {
        return StreamSpec.of(stream)
                .withPartitions(2)
                .withSegmentSize(100)
                .withStorage(storage)
                .withKeyIndex();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private Map<String, List<String>> publishRandom(Random random, int events, int keys) {
        Map<String, List<String>> published = new HashMap<>();
        for (int from = 0; from < events; from += 50) {
            List<Event> batch = new ArrayList<>();
            for (int i = from; i < from + 50; i++) {
                int key = (int) Math.abs(random.nextGaussian() * keys / 3); // some often, some never again
                batch.add(Event.ofText("k" + key, "v" + i).withHeader("n", "" + i));
                published.computeIfAbsent("k" + key, k -> new ArrayList<>()).add("v" + i);
            }
            batch.add(Event.ofText("without a key"));
            publisher.publishAll(stream, batch);
        }
        return published;
    }

    private static List<String> texts(KeyEvents events) {
        return events.events().stream().map(StoredEvent::text).toList();
    }

    @ParameterizedTest
    @EnumSource
    void readKey_manySegments_returnsAllEventsOfKeyInOrder(Storage storage) {
        eventSql.createStream(indexed(storage));
        // Frequent keys have events in more segments than one statement reads.
        Map<String, List<String>> published = publishRandom(Seeds.random("KeyEventsIT"), 4_000, 100);
        published.forEach((key, values) -> {
            KeyEvents found = eventSql.readKey(stream, key);
            assertThat(texts(found)).isEqualTo(values);
            assertThat(found.version()).isEqualTo(values.size());
            assertThat(found.next()).isEmpty();
            StoredEvent last = found.events().getLast();
            assertThat(eventSql.read(last.position(), 1)).containsExactly(last);
            assertThat(last.headers()).isEqualTo(Map.of("n", values.getLast().substring(1)));
        });
        KeyEvents none = eventSql.readKey(stream, "never published");
        assertThat(none.events()).isEmpty();
        assertThat(none.version()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void readKey_inPages_continuesWhereThePageEnded(Storage storage) {
        eventSql.createStream(indexed(storage));
        List<String> values =
                publishRandom(Seeds.random("KeyEventsIT.pages"), 1_000, 5).get("k0");
        for (int max : new int[] {1, 7, 1_000}) {
            List<String> read = new ArrayList<>();
            KeyEvents page = eventSql.readKey(stream, "k0", max);
            read.addAll(texts(page));
            while (page.next().isPresent()) {
                assertThat(page.events()).hasSize(max);
                page = eventSql.readKey(stream, "k0", page.next().orElseThrow(), max);
                read.addAll(texts(page));
            }
            assertThat(read).isEqualTo(values);
        }
    }

    /** Keys have large events in more segments than one statement names, and in a single one. */
    @ParameterizedTest
    @EnumSource
    void readKey_largeEvents_pageEndsAtItsBytes(Storage storage) throws Exception {
        eventSql.createStream(indexed(storage).withPartitions(1));
        int bytes = 1 << 20;
        for (int segment = 0; segment < 20; segment++) {
            publisher.publish(stream, large("many segments", segment, bytes));
            publisher.publishAll(stream, others(99));
        }
        for (int i = 0; i < 5; i++) {
            publisher.publish(stream, large("one segment", i, bytes));
        }
        for (int i = 0; i < 2; i++) {
            publisher.publish(stream, large("larger than a page", i, Settings.DEFAULT_MAX_EVENT_BYTES));
        }
        assertThat(pages("many segments", EventSql.KEY_EVENTS_MAX))
                .extracting(List::size)
                .containsExactly(4, 4, 4, 4, 4);
        assertThat(pages("one segment", EventSql.KEY_EVENTS_MAX))
                .extracting(List::size)
                .containsExactly(4, 1);
        assertThat(pages("one segment", 3)).extracting(List::size).containsExactly(3, 2);
        assertThat(pages("larger than a page", EventSql.KEY_EVENTS_MAX))
                .extracting(List::size)
                .containsExactly(1, 1);
        Aggregate loaded = eventSql.loadAggregate(stream, "many segments");
        assertThat(loaded.version()).isEqualTo(20);
        assertThat(labels(loaded.events()))
                .isEqualTo(IntStream.range(0, 20).mapToObj(i -> "v" + i).toList())
                .isEqualTo(pages("many segments", EventSql.KEY_EVENTS_MAX).stream()
                        .flatMap(List::stream)
                        .toList());
        assertThat(cluster.sum(
                        "SELECT count(*) FROM eventsql.read_key_v3('" + stream + "', 0, 'many segments', 0, 0, 1000)"))
                .as("rows of the previous release's function")
                .isEqualTo(20);
    }

    private static Event large(String key, int number, int bytes) {
        String label = "v" + number + "-";
        return Event.ofText(key, label + "x".repeat(bytes - label.length()));
    }

    private static List<String> labels(List<StoredEvent> events) {
        return events.stream()
                .map(event -> event.text().substring(0, event.text().indexOf('-')))
                .toList();
    }

    private List<List<String>> pages(String key, int maxEvents) {
        List<List<String>> pages = new ArrayList<>();
        KeyEvents page = eventSql.readKey(stream, key, maxEvents);
        pages.add(labels(page.events()));
        while (page.next().isPresent()) {
            page = eventSql.readKey(stream, key, page.next().orElseThrow(), maxEvents);
            pages.add(labels(page.events()));
        }
        return pages;
    }

    /** The block that has the offset of the position has no event of the key from there on, and the next one has the last. */
    @ParameterizedTest
    @EnumSource
    void readKey_fromTheMiddleOfABlock_endsWithTheLastEvent(Storage storage) {
        eventSql.createStream(indexed(storage).withPartitions(1));
        for (int i = 0; i < 2; i++) {
            publisher.publishAll(stream, List.of(Event.ofText("a", "v" + i), Event.ofText("b", "v" + i)));
        }
        KeyEvents page = eventSql.readKey(stream, "a", new EventPosition(stream, 0, 0, 1), 1);
        assertThat(texts(page)).containsExactly("v1");
        assertThat(page.next()).isEmpty();
        assertThat(eventSql.readKey(stream, "a", new EventPosition(stream, 0, 0, 3), 1)
                        .events())
                .isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void readKey_segmentsExpired_returnsTheEventsThatAreLeft(Storage storage) throws Exception {
        eventSql.createStream(indexed(storage).withPartitions(1).withRetention(Retention.FOREVER.withMaxEvents(500)));
        List<String> values =
                publishRandom(Seeds.random("KeyEventsIT.expired"), 1_500, 3).get("k0");
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            cluster.execute("SELECT eventsql.expire_v1()");
            return texts(eventSql.readKey(stream, "k0")).size() < values.size();
        });
        KeyEvents found = eventSql.readKey(stream, "k0");
        assertThat(values.subList(values.size() - found.events().size(), values.size()))
                .isEqualTo(texts(found));
        assertThat(found.version()).isEqualTo(values.size());
    }

    @ParameterizedTest
    @EnumSource
    void readKey_compacted_segmentsThatWereMergedAreReadOnce(Storage storage) throws Exception {
        eventSql.createStream(indexed(storage).withPartitions(1).withCompaction(new Compaction(Duration.ofSeconds(1))));
        Map<String, List<String>> published = publishRandom(Seeds.random("KeyEventsIT.compacted"), 2_000, 20);
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            cluster.execute("SELECT eventsql.compact_v1()");
            return cluster.sum("SELECT count(*) FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                            + " WHERE g.end_offset - g.first_offset > s.segment_size AND s.name = '" + stream + "'")
                    > 0;
        });
        published.forEach((key, values) -> {
            List<String> found = texts(eventSql.readKey(stream, key));
            assertThat(found).doesNotHaveDuplicates();
            assertThat(found.getLast()).isEqualTo(values.getLast());
            assertThat(eventSql.keyVersion(stream, key)).isEqualTo(values.size());
        });
    }

    /** The last segment is nearly empty when the session makes its plans, and full when it uses them. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "read_key_v3('%s', 0, 'the key', 0, 0, 1000)", // of the previous release
                "read_key_v4('%s', 0, 'the key', 0, 0, 1000, 4194304)"
            })
    void readKey_planOfNearlyEmptySegment_readsTheEventsOfTheKeyOnly(String function) throws Exception {
        eventSql.createStream(indexed(Storage.ROWS).withPartitions(1));
        for (int segment = 0; segment < 20; segment++) {
            publisher.publish(stream, Event.ofText("the key", "v" + segment));
            publisher.publishAll(stream, others(99));
        }
        publisher.publishAll(stream, List.of(Event.ofText("the key", "last"), Event.ofText("other", "last")));
        String last = "events_" + stream + "__p0_s20";
        cluster.execute("VACUUM ANALYZE eventsql." + last);
        String read = "SELECT count(*) FROM eventsql." + function.formatted(stream);
        try (Connection connection = cluster.dataSources().getFirst().getConnection()) {
            connection.setAutoCommit(false);
            assertThat(Sql.queryLong(connection, read)).isEqualTo(21);
            connection.commit();
            publisher.publishAll(stream, others(98));
            assertThat(Sql.queryLong(connection, read)).isEqualTo(21);
            assertThat(Sql.queryLong(
                            connection,
                            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = '" + last
                                    + "'"))
                    .isBetween(1L, 2L); // with that of the first read, unless it has been reported
        }
    }

    private static List<Event> others(int events) {
        return IntStream.range(0, events)
                .mapToObj(i -> Event.ofText("other", "v" + i))
                .toList();
    }

    @ParameterizedTest
    @EnumSource
    void readKey_erased_eventsHaveNoValue(Storage storage) {
        eventSql.createStream(indexed(storage));
        Map<String, List<String>> published = publishRandom(Seeds.random("KeyEventsIT.erased"), 500, 10);
        eventSql.erase(ErasureSpec.of(stream, "k1"));
        assertThat(eventSql.readKey(stream, "k1").events())
                .hasSameSizeAs(published.get("k1"))
                .allMatch(StoredEvent::isErased);
        assertThat(texts(eventSql.readKey(stream, "k2"))).isEqualTo(published.get("k2"));
        publisher.publish(stream, Event.ofText("k1", "after"));
        assertThat(eventSql.readKey(stream, "k1").events().getLast().text()).isEqualTo("after");
    }

    @Test
    void deleteStream_dropsItsReaders() throws Exception {
        try (TestCluster own = TestCluster.ofShards(1)) {
            EventSql ofOwn = own.open();
            ofOwn.createStream(indexed(Storage.ROWS));
            ofOwn.publisher().publishAll(stream, others(50));
            String readers = "SELECT count(*) FROM pg_proc WHERE prorettype = 'eventsql.key_event[]'::regtype";
            assertThat(own.sum(readers)).isEqualTo(own.sum("SELECT count(*) FROM eventsql.segment"));
            ofOwn.deleteStream(stream, ofOwn.previewDeleteStream(stream).confirmation());
            assertThat(own.sum(readers)).isZero();
        }
    }

    @Test
    void readKey_withoutIndex_isRefused() {
        eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withKeyVersions());
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> eventSql.readKey(stream, "a"));
    }

    /** A session keeps the plans that it made when the stream had no keys. */
    @Test
    void append_streamHasManyKeys_readsTheRowsOfItsOwnOnly() throws Exception {
        String counting = "SELECT eventsql.raise_key_versions_v1("
                + "(SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'), array_fill(0, ARRAY[20]),"
                + " ARRAY(SELECT 'k' || n FROM generate_series(%1$d, %1$d + 19) AS n), array_fill(1, ARRAY[20]))";
        try (TestCluster own = TestCluster.ofShards(1);
                Connection connection = own.dataSources().getFirst().getConnection();
                Statement statement = connection.createStatement()) {
            own.open().createStream(StreamSpec.of(stream).withPartitions(1).withKeyVersions());
            for (String scan : List.of("seqscan", "bitmapscan", "sort")) {
                statement.execute("SET enable_%s = off".formatted(scan)); // as the append function does
            }
            statement.execute("SET plan_cache_mode = force_generic_plan");
            statement.execute(counting.formatted(1));
            own.execute("INSERT INTO eventsql.key_version (stream_id, partition, key, version)"
                    + " SELECT stream_id, 0, 'other' || n, 1 FROM eventsql.stream, generate_series(1, 20000) AS n"
                    + " WHERE name = '" + stream + "'");
            connection.setAutoCommit(false);
            statement.execute(counting.formatted(11)); // half of the keys are new
            try (ResultSet rows = statement.executeQuery("SELECT seq_tup_read + idx_tup_fetch"
                    + " FROM pg_stat_xact_user_tables WHERE relname = 'key_version'")) {
                assertThat(rows.next()).isTrue();
                assertThat(rows.getLong(1)).isBetween(20L, 100L);
            }
            connection.commit();
            assertThat(own.sum("SELECT sum(version) FROM eventsql.key_version WHERE key LIKE 'k%'"))
                    .isEqualTo(40);
        }
    }
}
