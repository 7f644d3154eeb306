package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.AfterCommitDataSource;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Segments of 100 events, batches of at most 50: every other batch begins a segment. */
@Timeout(120)
class SegmentKeeperIT {
    private static final int SEGMENT_SIZE = 100;
    private static final int BATCH = 50;
    private static final Pattern ENSURE = Pattern.compile("eventsql[.](ensure_segments)_v1");

    private static TestCluster cluster;
    private static DataSource database;

    private final String stream = TestStreams.newName();
    private final EventSql eventSql = cluster.open(settings -> settings.maxBatchEvents(BATCH));
    private final EventPublisher publisher = eventSql.publisher();

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private void createStream(int partitions) {
        eventSql.createStream(StreamSpec.of(stream).withPartitions(partitions).withSegmentSize(SEGMENT_SIZE));
    }

    private static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k", "" + i))
                .toList();
    }

    /** Publishes to the one partition of the stream, a batch at a time. */
    private EventPosition publish(EventPublisher with, int from, int to) {
        EventPosition last = null;
        for (int i = from; i < to; i += BATCH) {
            last = with.publishAll(stream, events(i, Math.min(i + BATCH, to))).getLast();
        }
        return last;
    }

    private List<String> segments(int partition) throws SQLException {
        return segments(database, stream + "__p" + partition);
    }

    private static List<String> segments(DataSource of, String partition) throws SQLException {
        return Sql.query(
                of,
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = ?::regclass",
                "eventsql.events_" + partition);
    }

    private void assertStored(int events) {
        List<StoredEvent> stored = new ArrayList<>();
        for (int from = 0; from < events; from += 1_000) {
            stored.addAll(eventSql.read(new EventPosition(stream, 0, 0, from), 1_000));
        }
        assertThat(stored.stream().map(StoredEvent::offset))
                .containsExactlyElementsOf(
                        IntStream.range(0, events).mapToObj(i -> (long) i).toList());
    }

    @Test
    void publish_acrossSegments_segmentsAreReadyAheadOfTheHead() throws SQLException {
        createStream(1);
        assertThat(segments(0)).hasSize(2);
        publish(publisher, 0, 730);
        // The head's and a spare one.
        await().untilAsserted(() -> assertThat(segments(0)).hasSizeGreaterThanOrEqualTo(7 + 2));
        assertStored(730);
    }

    @Test
    void publish_segmentMissingAtTheHead_isAddedAndNothingIsLost() throws SQLException {
        createStream(1);
        publish(publisher, 0, 90);
        await().untilAsserted(() -> assertThat(segments(0)).hasSizeGreaterThanOrEqualTo(2));
        for (String segment : segments(0)) {
            if (!segment.endsWith("_s0")) {
                Sql.execute(database, "DROP TABLE " + segment);
            }
        }
        try (EventSql other = cluster.open(settings -> settings.maxBatchEvents(BATCH))) {
            EventPosition last = publish(other.publisher(), 90, 240);
            assertThat(last.offset()).isEqualTo(239);
        }
        assertStored(240);
    }

    /** Goal: processes that reach the end of the segments at the same time log no warning, because every call succeeds. */
    @Test
    void publish_burstOfTwoProcesses_logsNoWarning() throws Exception {
        createStream(1);
        try (CapturedLog log = CapturedLog.ofAppending();
                EventSql other = cluster.open(settings -> settings.maxBatchEvents(BATCH));
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<EventPosition> published = executor.submit(() -> publish(other.publisher(), 0, 2_000));
            publish(publisher, 2_000, 4_000);
            published.get(120, TimeUnit.SECONDS);
            assertThat(log.lines()).isEmpty();
        }
    }

    /**
     * Goal: a long reader of the whole stream, such as a report or pg_dump, does not lock publishers out while segments
     * are added. Method: a transaction that has read the stream stays open while events are published across many
     * segments; a publisher that had to wait for it would never finish.
     */
    @Test
    void publish_acrossSegmentsWithLongReader_isNotBlocked() throws Exception {
        createStream(1);
        publish(publisher, 0, 30);
        try (Connection reader = database.getConnection();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            String count = "SELECT count(*) FROM eventsql.events_" + stream;
            assertThat(Sql.query(reader, count)).containsExactly("30");
            Future<EventPosition> published = executor.submit(() -> publish(publisher, 30, 1_030));
            assertThat(published.get(120, TimeUnit.SECONDS).offset()).isEqualTo(1_029);
            await().untilAsserted(() -> assertThat(segments(0)).hasSizeGreaterThanOrEqualTo(12));
            assertThat(Sql.query(reader, count))
                    .as("the snapshot was open all the time")
                    .containsExactly("30");
            reader.rollback();
        }
        assertStored(1_030);
    }

    /**
     * Goal: instances that reach the end of the same segment at the same moment add each segment once and store
     * everything. Method: several instances publish to one partition at once across many segments; the segments ahead
     * are dropped first, so that each instance finds one missing.
     */
    @Test
    void publish_manyInstancesAtTheSameSegmentEnd_addEachSegmentOnce() throws Exception {
        createStream(1);
        publish(publisher, 0, 50);
        await().untilAsserted(() -> assertThat(segments(0)).hasSizeGreaterThanOrEqualTo(3));
        for (String segment : segments(0)) {
            if (!segment.endsWith("_s0")) {
                Sql.execute(database, "DROP TABLE " + segment);
            }
        }
        int instances = 4;
        CountDownLatch start = new CountDownLatch(1);
        List<EventSql> opened = new ArrayList<>();
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<EventPosition>> results = new ArrayList<>();
            for (int i = 0; i < instances; i++) {
                EventSql instance = cluster.open(settings -> settings.maxBatchEvents(BATCH));
                opened.add(instance);
                results.add(executor.submit(() -> {
                    start.await();
                    return publish(instance.publisher(), 0, 400);
                }));
            }
            start.countDown();
            for (Future<EventPosition> result : results) {
                assertThat(result.get(120, TimeUnit.SECONDS)).isNotNull();
            }
        }
        opened.forEach(EventSql::close);
        assertStored(50 + instances * 400);
        assertThat(segments(0)).doesNotHaveDuplicates().hasSizeGreaterThanOrEqualTo(17);
    }

    /** Goal: after a restore, when an id belongs to another stream, no segment is added to that one. */
    @Test
    void appended_idOfTheStreamIsThatOfAnother_addsSegmentsToTheRightOne() throws Exception {
        try (TestCluster restored = TestCluster.ofShards(1)) {
            DataSource own = restored.dataSources().getFirst();
            EventSql instance = restored.open();
            for (String name : List.of("a", "b")) {
                instance.createStream(StreamSpec.of(name).withPartitions(1).withSegmentSize(SEGMENT_SIZE));
            }
            instance.close();
            Shards shards = Shards.open(restored.dataSources(), Settings.defaults());
            Shard shard = shards.get(0);
            StreamSpec spec = StreamSpec.of("a").withPartitions(1).withSegmentSize(SEGMENT_SIZE);
            shard.streams().ensure(spec); // remembers the id
            SegmentKeeper keeper = new SegmentKeeper();
            shard.addAnchors(keeper::forget);
            Sql.execute(
                    own,
                    "UPDATE eventsql.stream SET name = 'temporary', table_name = 'temporary' WHERE name = 'a'",
                    "UPDATE eventsql.stream SET name = 'a', table_name = 'events_a' WHERE name = 'b'",
                    "UPDATE eventsql.stream SET name = 'b', table_name = 'events_b' WHERE name = 'temporary'",
                    "DELETE FROM eventsql.segment",
                    "SELECT eventsql.declare_restored('test')");

            await().untilAsserted(() -> {
                keeper.appended(shard, spec, 0, 0, BATCH);
                assertThat(segments(own, "a__p0")).as("segments of a").hasSize(3);
            });

            assertThat(segments(own, "b__p0")).as("segments of b").hasSize(2);
            shards.close();
        }
    }

    /** The answer has the segments that were due when the database read the head; no append may follow to notice more. */
    @Test
    void appended_whileSegmentsAreBeingAdded_addsThoseDueThen() throws SQLException {
        createStream(1);
        StreamSpec spec = StreamSpec.of(stream).withPartitions(1).withSegmentSize(SEGMENT_SIZE);
        SegmentKeeper keeper = new SegmentKeeper();
        List<Shard> shard = new ArrayList<>();
        AtomicInteger transactions = new AtomicInteger();
        DataSource late = new AfterCommitDataSource(database, ENSURE, function -> {
            if (transactions.incrementAndGet() == 1) {
                moveHead(150);
                keeper.appended(shard.getFirst(), spec, 0, 150, BATCH);
            }
        });
        Shards shards = Shards.open(List.of(late), Settings.defaults());
        shard.add(shards.get(0));
        moveHead(50);
        keeper.appended(shard.getFirst(), spec, 0, 50, BATCH);
        await().untilAsserted(() -> {
            assertThat(segments(0)).hasSize(4);
            assertThat(transactions).hasValue(2);
        });
        shards.close();
    }

    private void moveHead(long head) {
        try {
            Sql.execute(
                    database,
                    "UPDATE eventsql.producer_batch b SET next_offset = " + head
                            + " FROM eventsql.stream s WHERE s.stream_id = b.stream_id AND s.name = '" + stream + "'");
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void publish_addingSegmentsIsBlocked_resumesAfterwards() throws Exception {
        createStream(2);
        EventPosition first = publisher.publish(stream, Event.ofText("k", "first"));
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
                Connection blocking = database.getConnection();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            blocking.setAutoCommit(false);
            try (var statement = blocking.createStatement()) {
                // What a CREATE INDEX CONCURRENTLY or ANALYZE takes.
                statement.execute("LOCK TABLE eventsql.events_" + stream + "__p" + first.partition()
                        + " IN SHARE UPDATE EXCLUSIVE MODE");
            }
            Future<EventPosition> published = executor.submit(() -> publish(publisher, 0, 500));
            await().untilAsserted(() -> assertThat(Sql.queryLong(
                            database,
                            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                    + " AND query LIKE '%ensure_segments_v1%' AND datname = current_database()"))
                    .isPositive());
            blocking.rollback();
            published.get(120, TimeUnit.SECONDS);
            handled.awaitSize(501).assertOnceAndInOrder();
        }
    }
}
