package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The last event of a key, by the library, by SQL and in the view of the current state. */
@Timeout(120)
class LatestIT {
    private static final int PARTITIONS = 2;

    /** One shard, shared by the tests. */
    private static TestCluster shared;

    final String stream = TestStreams.newName();
    private final String table = "eventsql.events_" + stream;
    TestCluster cluster;
    EventSql eventSql;
    private EventPublisher publisher;

    @BeforeAll
    static void createDatabase() {
        shared = TestCluster.ofShards(1);
    }

    @AfterAll
    static void dropDatabase() {
        shared.close();
    }

    /** Returns how the stream keeps its events. */
    Storage storage() {
        return Storage.ROWS;
    }

    /** Returns how many events are removed while keys are looked up. */
    long removedMin() {
        return 1_000;
    }

    private StreamSpec spec() {
        return StreamSpec.of(stream).withStorage(storage());
    }

    private void open() {
        open(spec().withPartitions(PARTITIONS).withSegmentSize(100));
    }

    final void open(StreamSpec spec) {
        open(shared, spec.withCompaction(Compaction.DEFAULT));
    }

    private void open(TestCluster databases, StreamSpec spec) {
        cluster = databases;
        eventSql = cluster.open();
        eventSql.createStream(spec);
        publisher = eventSql.publisher();
    }

    @AfterEach
    void closeInstances() {
        shared.closeInstances();
    }

    /** Publishes random events and tombstones; returns the last value of each key, {@code null} for a tombstone. */
    private Map<String, String> publishRandom(Random random, int events, int keys) {
        Map<String, String> last = new TreeMap<>();
        for (int from = 0; from < events; from += 50) {
            List<Event> batch = new ArrayList<>();
            for (int i = from; i < from + 50; i++) {
                String key = "k" + random.nextInt(keys);
                String value = random.nextInt(3) == 0 ? null : "\"" + i + "\"";
                batch.add(
                        value == null
                                ? Event.tombstone(key)
                                : Event.ofText(key, value).withHeader("n", "" + i));
                last.put(key, value);
            }
            publisher.publishAll(stream, batch);
        }
        publisher.publish(stream, Event.ofText("without a key"));
        return last;
    }

    @Test
    void latest_randomEventsInTwoShards_isTheLastOneOfEachKey() throws SQLException {
        try (TestCluster two = TestCluster.ofShards(2)) {
            open(two, spec().withPartitions(PARTITIONS).withSegmentSize(100).withCompaction(Compaction.DEFAULT));
            assertLastOfEachKey();
        }
    }

    private void assertLastOfEachKey() throws SQLException {
        Map<String, String> expected = publishRandom(Seeds.random("LatestIT"), 1_000, 60);
        Map<String, String> found = new HashMap<>();
        for (String key : expected.keySet()) {
            Optional<StoredEvent> last = eventSql.latest(stream, key);
            last.ifPresent(event -> assertThat(event).isEqualTo(readOne(event.position())));
            last.ifPresent(event -> assertThat(event.headers())
                    .isEqualTo(readOne(event.position()).headers()));
            found.put(key, last.map(StoredEvent::text).orElse(null));
        }
        assertThat(found).isEqualTo(expected);
        assertThat(eventSql.latest(stream, "never published")).isEmpty();
        assertThat(viewed("convert_from(value, 'UTF8')")).isEqualTo(withValues(expected));
        assertThat(byFunction(expected.keySet())).isEqualTo(withValues(expected));
    }

    private StoredEvent readOne(EventPosition position) {
        return eventSql.read(position, 1).getFirst();
    }

    private static Map<String, String> withValues(Map<String, String> last) {
        Map<String, String> present = new TreeMap<>(last);
        present.values().removeIf(value -> value == null);
        return present;
    }

    private Map<String, String> viewed(String value) throws SQLException {
        return rows("SELECT key || '=' || " + value + " FROM " + table + "__latest");
    }

    private Map<String, String> byFunction(Iterable<String> keys) throws SQLException {
        Map<String, String> found = new TreeMap<>();
        for (String key : keys) {
            found.putAll(rows("SELECT '" + key + "=' || convert_from(l.value, 'UTF8') FROM eventsql.stream_partition p"
                    + " JOIN eventsql.stream s USING (stream_id)"
                    + " CROSS JOIN LATERAL eventsql.latest_v1(s.name, p.partition, '" + key + "') l"
                    + " WHERE s.name = '" + stream + "'"));
        }
        return found;
    }

    private Map<String, String> rows(String query) throws SQLException {
        Map<String, String> rows = new TreeMap<>();
        for (DataSource shard : cluster.dataSources()) {
            for (String row : Sql.query(shard, query)) {
                int split = row.indexOf('=');
                assertThat(rows.put(row.substring(0, split), row.substring(split + 1)))
                        .as("another row of %s", row)
                        .isNull();
            }
        }
        return rows;
    }

    private long fullSegments(int events) throws SQLException {
        return cluster.sum("SELECT count(*) FROM eventsql.segment JOIN eventsql.stream s USING (stream_id)"
                + " WHERE s.name = '" + stream + "' AND end_offset <= " + events);
    }

    @Test
    void latest_moreSegmentsThanOneStatementSearches_isFoundInTheOldest() throws SQLException {
        open(spec().withPartitions(1).withSegmentSize(100));
        EventPosition first = publisher.publish(stream, Event.ofText("first", "1"));
        int events = 0;
        do { // segments that fill quickly are followed by larger ones
            publishMany(20, 100);
            events += 2_000;
        } while (fullSegments(events) <= 64 && events < 200_000);
        assertThat(fullSegments(events)).isGreaterThan(64);
        assertThat(eventSql.latest(stream, "first").orElseThrow().position()).isEqualTo(first);
        assertThat(eventSql.latest(stream, "never published")).isEmpty();
        publisher.publish(stream, Event.tombstone("first"));
        assertThat(eventSql.latest(stream, "first")).isEmpty();
    }

    /** The values of a key are numbers that rise; each fifth event is a tombstone. */
    @Test
    void latest_whilePublishing_isNeverOlderThanWhatWasAcknowledged() throws Exception {
        open();
        int keys = 4;
        int events = 300;
        List<AtomicInteger> acknowledged = new ArrayList<>();
        try (ExecutorService threads = Executors.newCachedThreadPool()) {
            List<Future<?>> publishing = new ArrayList<>();
            for (int k = 0; k < keys; k++) {
                String key = "k" + k;
                AtomicInteger last = new AtomicInteger(-1);
                acknowledged.add(last);
                publishing.add(threads.submit(() -> {
                    for (int i = 0; i < events; i++) {
                        publisher.publish(stream, i % 5 == 0 ? Event.tombstone(key) : Event.ofText(key, "" + i));
                        last.set(i);
                    }
                }));
            }
            Random random = Seeds.random("latest_whilePublishing");
            int reads = 0;
            while (publishing.stream().anyMatch(each -> !each.isDone()) || reads < 100) {
                int k = random.nextInt(keys);
                int before = acknowledged.get(k).get();
                Optional<StoredEvent> last = eventSql.latest(stream, "k" + k);
                int after = acknowledged.get(k).get() + 1; // that one may be stored already
                reads++;
                if (last.isPresent()) {
                    assertThat(Integer.parseInt(last.get().text())).isBetween(before, after);
                } else {
                    assertThat(before < 0
                                    || IntStream.rangeClosed(before, after).anyMatch(i -> i % 5 == 0))
                            .as("no event of k%d between %d and %d", k, before, after)
                            .isTrue();
                }
            }
            for (Future<?> each : publishing) {
                each.get(120, TimeUnit.SECONDS);
            }
        }
        for (int k = 0; k < keys; k++) {
            assertThat(eventSql.latest(stream, "k" + k).orElseThrow().text()).isEqualTo("" + (events - 1));
        }
    }

    @Test
    void latest_cleared_returnsNothing() throws SQLException {
        open();
        Map<String, String> last = publishRandom(Seeds.random("latest_cleared"), 300, 20);
        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        for (String key : last.keySet()) {
            assertThat(eventSql.latest(stream, key)).isEmpty();
        }
        assertThat(viewed("1")).isEmpty();
        publisher.publish(stream, Event.ofText("k1", "again"));
        assertThat(eventSql.latest(stream, "k1").orElseThrow().text()).isEqualTo("again");
    }

    @Test
    void latest_erasedKey_isErasedUnlessATombstone() throws SQLException {
        open();
        publisher.publish(stream, Event.ofText("erased", "secret"));
        publisher.publish(stream, Event.ofText("deleted", "secret"));
        publisher.publish(stream, Event.tombstone("deleted").withHeader("name", "x"));
        eventSql.erase(ErasureSpec.of(stream, "erased"));
        eventSql.erase(ErasureSpec.of(stream, "deleted").withHeaders("name"));
        StoredEvent erased = eventSql.latest(stream, "erased").orElseThrow();
        assertThat(erased.isErased()).isTrue();
        assertThat(erased.isTombstone()).isFalse();
        assertThat(erased.value()).isEmpty();
        assertThat(eventSql.latest(stream, "deleted")).isEmpty();
        assertThat(viewed("1")).as("keys with a value").isEmpty();
    }

    @Test
    void view_jsonStream_hasJsonbValues() throws SQLException {
        open(spec().withPartitions(PARTITIONS).asJson());
        publisher.publish(stream, Event.ofText("a", "{\"n\": 1}"));
        publisher.publish(stream, Event.ofText("a", "{\"n\": 2}").withHeader("h", "x"));
        publisher.publish(stream, Event.ofText("b", "null"));
        publisher.publish(stream, Event.ofText("c", "{\"n\": 3}"));
        publisher.publish(stream, Event.tombstone("c"));
        assertThat(viewed("coalesce((value ->> 'n') || (headers ->> 'h'), '')")).isEqualTo(Map.of("a", "2x", "b", ""));
        assertThat(viewed("value")).containsOnlyKeys("a", "b");
    }

    @Test
    void view_settingsOfTheStreamChange_followsThem() throws SQLException {
        StreamSpec spec = spec().withPartitions(PARTITIONS).withCompaction(Compaction.DEFAULT);
        open(spec);
        publisher.publish(stream, Event.ofText("a", "{\"n\": 1}"));
        eventSql.alterStream(spec.withSegmentSize(5_000)); // the view may be in use by others
        eventSql.alterStream(spec.asJson());
        assertThat(viewed("(value ->> 'n')")).isEqualTo(Map.of("a", "1"));
        eventSql.alterStream(spec);
        assertThat(viewed("convert_from(value, 'UTF8')")).isEqualTo(Map.of("a", "{\"n\": 1}"));
        eventSql.alterStream(spec.withCompaction(null));
        assertThat(cluster.sum("SELECT count(*) FROM pg_views WHERE viewname = 'events_" + stream + "__latest'"))
                .isZero();
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> eventSql.latest(stream, "a"));
    }

    @Test
    void latest_compactionBeginsWithEventsInTheStream_findsThemBeforeTheIndexesExist() throws SQLException {
        StreamSpec spec = spec().withPartitions(1).withSegmentSize(100);
        open(shared, spec);
        publisher.publish(stream, Event.ofText("first", "1"));
        publishMany(5, 100);
        eventSql.alterStream(spec.withCompaction(Compaction.DEFAULT));
        assertThat(eventSql.latest(stream, "first").orElseThrow().text()).isEqualTo("1");
        assertThat(viewed("convert_from(value, 'UTF8')")).hasSize(101);
    }

    private void publishMany(int calls, int events) {
        for (int i = 0; i < calls; i++) {
            publisher.publishAll(
                    stream,
                    IntStream.range(0, events)
                            .mapToObj(n -> Event.ofText("k" + n, "x"))
                            .toList());
        }
    }

    /** Superseded events and tombstones are removed, and segments rewritten and merged, while keys are looked up. */
    @Test
    void latest_whileCompacting_isTheLastEventOfEachKey() throws SQLException {
        open();
        eventSql.alterStream(spec().withPartitions(PARTITIONS)
                .withSegmentSize(100)
                .withCompaction(new Compaction(Duration.ofSeconds(1))));
        Random random = Seeds.random("latest_whileCompacting");
        Map<String, String> last = new HashMap<>();
        long endsAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        long removed = 0;
        for (int round = 0; removed < removedMin(); round++) {
            assertThat(System.nanoTime()).as("removed %d events", removed).isLessThan(endsAt);
            List<Event> batch = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                String key = "k" + random.nextInt(40);
                String value = random.nextInt(4) == 0 ? null : round + "." + i;
                batch.add(value == null ? Event.tombstone(key) : Event.ofText(key, value));
                last.put(key, value);
            }
            publisher.publishAll(stream, batch);
            for (int i = 0; i < 20; i++) {
                String key = "k" + random.nextInt(40);
                assertThat(eventSql.latest(stream, key).map(StoredEvent::text).orElse(null))
                        .as("round %d, %s", round, key)
                        .isEqualTo(last.get(key));
            }
            removed = cluster.sum("SELECT sum(removed_events) FROM eventsql.segment"
                    + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = '" + stream + "'");
        }
        assertThat(viewed("convert_from(value, 'UTF8')")).isEqualTo(withValues(last));
    }

    @Test
    void latest_found_borrowsOneConnectionOnce() {
        open();
        publisher.publish(stream, Event.ofText("k", "1"));
        AtomicInteger borrowed = new AtomicInteger();
        Thread caller = Thread.currentThread();
        DataSource counted = new DelegatingDataSource(shared.dataSources().getFirst()) {
            @Override
            public Connection getConnection() throws SQLException {
                if (Thread.currentThread() == caller) { // others belong to background work
                    borrowed.incrementAndGet();
                }
                return super.getConnection();
            }
        };
        EventSql other = shared.open(List.of(counted));
        assertThat(other.latest(stream, "k")).isPresent(); // it reads the stream before
        borrowed.set(0);
        assertThat(other.latest(stream, "k").map(StoredEvent::text)).contains("1");
        assertThat(borrowed).hasValue(1);
    }

    /** What a process remembers of the stream sends it to other partitions than the key has now. */
    @Test
    void latest_anotherProcessHasCreatedTheStreamAnew_findsItsEvents() throws SQLException {
        open();
        publishRandom(new Random(0), 50, 10);
        assertThat(eventSql.latest(stream, "k0")).isPresent();
        EventSql other = shared.open();
        other.deleteStream(stream, other.previewDeleteStream(stream).confirmation());
        other.createStream(spec().withPartitions(PARTITIONS + 1).withCompaction(Compaction.DEFAULT));
        for (int key = 0; key < 20; key++) {
            other.publisher().publish(stream, Event.ofText("k" + key, "\"anew\""));
        }
        for (int key = 0; key < 20; key++) {
            assertThat(eventSql.latest(stream, "k" + key).map(StoredEvent::text))
                    .as("k%d", key)
                    .contains("\"anew\"");
        }
        assertThat(eventSql.latest(stream, "absent")).isEmpty();
    }

    @Test
    void latest_anotherProcessHasDeletedTheStream_isUnknown() {
        open();
        publisher.publish(stream, Event.ofText("k", "1"));
        assertThat(eventSql.latest(stream, "k")).isPresent();
        EventSql other = shared.open();
        other.deleteStream(stream, other.previewDeleteStream(stream).confirmation());
        assertThatExceptionOfType(UnknownStreamException.class).isThrownBy(() -> eventSql.latest(stream, "k"));
    }

    @Test
    void latest_anotherProcessHasBegunCompaction_isFound() {
        StreamSpec spec = spec().withPartitions(PARTITIONS);
        open(shared, spec);
        publisher.publish(stream, Event.ofText("k", "1"));
        EventSql other = shared.open();
        other.alterStream(spec.withCompaction(Compaction.DEFAULT));
        assertThat(eventSql.latest(stream, "k").map(StoredEvent::text)).contains("1");
    }

    @Test
    void latest_streamWithoutCompaction_isRejected() throws SQLException {
        open();
        String plain = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(plain).withPartitions(1));
        publisher.publish(plain, Event.ofText("k", "1"));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.latest(plain, "k"))
                .withMessageContaining(plain + " has none")
                .satisfies(e -> assertThat(e.field()).isEqualTo("stream"));
        assertThatExceptionOfType(UnknownStreamException.class).isThrownBy(() -> eventSql.latest("unknown", "k"));
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> eventSql.latest(stream, ""));
    }

    @Test
    void latest_largeSegmentWithoutIndex_isRefusedRatherThanRead() throws SQLException {
        StreamSpec spec = spec().withPartitions(1);
        open(shared, spec);
        publisher.publish(stream, Event.ofText("first", "1"));
        publishMany(20, 500);
        eventSql.alterStream(spec.withCompaction(Compaction.DEFAULT));
        DataSource database = cluster.dataSources().getFirst();
        for (String index : Sql.query(
                database,
                "SELECT i.indexrelid::regclass FROM pg_index i WHERE i.indexprs IS NOT NULL AND i.indrelid IN"
                        + " (SELECT to_regclass('eventsql.' || g.table_name) FROM eventsql.segment g"
                        + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?)",
                stream)) {
            Sql.execute(database, "DROP INDEX " + index);
        }
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> eventSql.latest(stream, "first"))
                .withMessageContaining("has no index of keys yet");
    }
}
