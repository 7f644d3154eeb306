package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ClearPreview;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.PartitionState;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.sql.ClearStatements;
import io.eventsql.internal.sql.ClearStatements.Attachment;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Segments of 100 events, on one shard. */
@Timeout(120)
class StreamCleanerIT {
    private static final int SEGMENT_SIZE = 100;

    private static TestCluster cluster;
    private static DataSource database;
    private static EventSql eventSql;

    private final String stream = TestStreams.newName();
    private final StreamSpec spec = StreamSpec.of(stream).withPartitions(1).withSegmentSize(SEGMENT_SIZE);

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

    @Test
    void clear_deletesEvents_keepsOffsetsRising_freesSpace() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 250);
        long before = bytes();

        ClearPreview preview = eventSql.previewClear(stream);
        assertThat(preview.shards()).containsExactly(new ClearPreview.ShardContent(0, 250, 3));
        assertThat(eventSql.clear(stream, preview.confirmation())).isEqualTo(250);

        assertThat(eventSql.previewClear(stream).shards()).containsExactly(new ClearPreview.ShardContent(0, 0, 0));
        assertThat(segments()).doesNotContain("s0", "s1").contains("s2");
        assertThat(bytes()).isLessThan(before / 2);
        assertThat(eventSql.publisher().publish(stream, Event.ofText("k", "250")))
                .isEqualTo(at(250));
        assertThat(eventSql.read(at(250), 10)).hasSize(1);
        assertThatThrownBy(() -> eventSql.read(at(249), 10)).isInstanceOf(OffsetOutOfRangeException.class);
        assertThatThrownBy(() -> eventSql.read(at(0), 10)).isInstanceOf(OffsetOutOfRangeException.class);
    }

    @Test
    void clear_segmentsBelowLogStart_areNotAddedAgain() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 250);
        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());

        // As by a process of the previous release that knows an older head.
        assertThat(Sql.query(database, "SELECT eventsql.add_segment_v1(NULL, ?, 0, 1)", streamId()))
                .containsExactly("f");
        assertThat(segments()).doesNotContain("s0", "s1").contains("s2");
    }

    @Test
    void clear_publisherRuns_losesNoLaterEvent() throws Exception {
        eventSql.createStream(spec);
        AtomicBoolean ended = new AtomicBoolean();
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Future<List<EventPosition>> publishing = threads.submit(() -> {
                List<EventPosition> positions = new ArrayList<>();
                while (!ended.get() || positions.size() < 500) {
                    positions.addAll(eventSql.publisher().publishAll(stream, events(0, 7)));
                }
                return positions;
            });
            try {
                for (int i = 0; i < 3; i++) {
                    long before = head();
                    await().until(() -> head() > before + 120);
                    eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
                }
            } finally {
                ended.set(true);
            }

            List<EventPosition> positions = publishing.get();
            assertThat(positions)
                    .extracting(EventPosition::offset)
                    .containsExactlyElementsOf(IntStream.range(0, positions.size())
                            .mapToObj(i -> (long) i)
                            .toList());
            long start = logStart();
            assertThat(start).isPositive();
            assertThat(Sql.queryLong(database, "SELECT count(*) FROM eventsql.events_" + stream))
                    .isEqualTo(positions.size() - start);
        }
    }

    /** PostgreSQL then says that the partition was removed concurrently. */
    @Test
    void retry_partitionIsDroppedWhileItIsDetached_repeats() throws Exception {
        Sql.execute(database, "CREATE TABLE parent (a int) PARTITION BY RANGE (a)");
        Sql.execute(database, "CREATE TABLE part PARTITION OF parent FOR VALUES FROM (0) TO (10)");
        List<String> states = new CopyOnWriteArrayList<>();
        try (ExecutorService threads = Executors.newSingleThreadExecutor();
                Connection reader = database.getConnection();
                Statement lock = reader.createStatement()) {
            reader.setAutoCommit(false);
            lock.execute("LOCK TABLE ONLY parent IN ACCESS SHARE MODE");
            Future<?> detaching = threads.submit(() -> StreamCleaner.retry("could not be cleared", () -> {
                try {
                    if (states.isEmpty()) {
                        Sql.execute(database, "ALTER TABLE parent DETACH PARTITION part CONCURRENTLY");
                    }
                } catch (SQLException e) {
                    states.add(SqlErrors.state(e));
                    throw e;
                }
            }));
            await().until(() ->
                    Sql.queryLong(database, "SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == 1);
            Sql.execute(database, "ALTER TABLE parent DETACH PARTITION part FINALIZE");
            Sql.execute(database, "DROP TABLE part");
            reader.commit();
            assertThat(detaching).as("%s", states).succeedsWithin(Duration.ofSeconds(60));
        }
        assertThat(states).containsExactly(SqlErrors.OBJECT_NOT_IN_PREREQUISITE_STATE);
    }

    @Test
    void clear_consumerAtTheHead_continues() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 150);
        Handled handled = new Handled();
        ConsumerSpec consumer = ConsumerSpec.of(stream, "c").withOutOfRangePolicy(OutOfRangePolicy.FAIL);
        try (Subscription member = eventSql.subscribe(consumer, handled::add)) {
            handled.awaitSize(150);
        }

        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        publish(150, 160);

        try (Subscription member = eventSql.subscribe(consumer, handled::add)) {
            handled.awaitSize(160);
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(0, 160));
    }

    @Test
    void clear_laggingConsumer_followsItsPolicy() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 150);
        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        publish(150, 160);

        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "earliest")
                        .withStartPosition(StartPosition.atOffset(20))
                        .withOutOfRangePolicy(OutOfRangePolicy.EARLIEST),
                handled::add)) {
            handled.awaitSize(10);
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(150, 160));
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "fail").withStartPosition(StartPosition.atOffset(20)), handled::add)) {
            await().until(() ->
                    eventSql.consumer(stream, "fail").state().getFirst().status() == PartitionState.Status.STOPPED);
        }
        assertThat(handled.size()).isEqualTo(10);
    }

    @Test
    void clear_memberHoldsPartition_fails() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 10);
        Handled handled = new Handled();
        String confirmation = eventSql.previewClear(stream).confirmation();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(stream, "holder"), handled::add)) {
            handled.awaitSize(10);
            assertThatThrownBy(() -> eventSql.clear(stream, confirmation))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("holder");
        }
        assertThat(eventSql.read(at(0), 100)).hasSize(10);

        assertThat(eventSql.clear(stream, confirmation)).isEqualTo(10);
    }

    @Test
    void clear_wrongOrUsedConfirmation_fails() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 10);
        String other = "other_" + stream;
        eventSql.createStream(StreamSpec.of(other).withPartitions(1));
        String ofOther = eventSql.previewClear(other).confirmation();
        String own = eventSql.previewClear(stream).confirmation();

        for (String wrong : List.of("", "yes", ofOther)) {
            assertThatThrownBy(() -> eventSql.clear(stream, wrong))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("confirmation");
        }
        assertThat(eventSql.read(at(0), 100)).hasSize(10);
        eventSql.clear(stream, own);
        publish(10, 20);
        assertThatThrownBy(() -> eventSql.clear(stream, own)).isInstanceOf(InvalidInputException.class);
        assertThat(eventSql.read(at(10), 100)).hasSize(10);
        assertThatThrownBy(() -> eventSql.previewClear("no_such_stream")).isInstanceOf(UnknownStreamException.class);
    }

    @Test
    void clear_interruptedBetweenSteps_isCompletedByARepeatedCall() throws SQLException {
        eventSql.createStream(spec);
        publish(0, 450);
        ClearStatements clearing = new ClearStatements(new SqlSchema("eventsql"));
        // As by a process that ended after the first step, and during the second.
        try (var connection = database.getConnection()) {
            connection.setAutoCommit(false);
            clearing.moveLogStartToHead(connection, streamId(), 0);
            connection.commit();
            connection.setAutoCommit(true);
            clearing.detach(connection, segment(clearing, 0));
        }
        try (var reader = database.getConnection();
                var connection = database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream);
            assertThatThrownBy(() -> clearing.detach(connection, segment(clearing, 1)))
                    .isInstanceOf(SQLException.class);
            reader.rollback();
        }
        assertThat(segment(clearing, 0).attachment()).isEqualTo(Attachment.DETACHED);
        assertThat(segment(clearing, 1).attachment()).isEqualTo(Attachment.DETACHING);

        ClearPreview preview = eventSql.previewClear(stream);
        assertThat(preview.shards()).containsExactly(new ClearPreview.ShardContent(0, 0, 4));
        eventSql.clear(stream, preview.confirmation());

        assertThat(segments()).doesNotContain("s0", "s1", "s2", "s3");
        assertThat(eventSql.publisher().publish(stream, Event.ofText("k", "450")))
                .isEqualTo(at(450));
    }

    @Test
    void clear_blockedByReader_retriesWhilePublishersContinue() throws Exception {
        eventSql.createStream(spec);
        publish(0, 150);
        try (var reader = database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream);
            String confirmation = eventSql.previewClear(stream).confirmation();
            assertThatThrownBy(() -> eventSql.clear(stream, confirmation))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("retry the call");
            publish(150, 160);
            assertThat(eventSql.read(at(0), 100)).hasSize(100);
            reader.rollback();
            assertThat(eventSql.clear(stream, confirmation)).isEqualTo(160);
        }
    }

    private ClearStatements.Segment segment(ClearStatements clearing, long number) throws SQLException {
        try (var connection = database.getConnection()) {
            return clearing.findExpired(connection, streamId(), 0).stream()
                    .filter(segment -> segment.table().endsWith("_s" + number))
                    .findFirst()
                    .orElseThrow();
        }
    }

    private int streamId() throws SQLException {
        return Math.toIntExact(
                Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'"));
    }

    private EventPosition at(long offset) {
        return new EventPosition(stream, 0, 0, offset);
    }

    private void publish(int from, int to) {
        eventSql.publisher().publishAll(stream, events(from, to));
    }

    private static List<Event> events(int from, int to) {
        return texts(from, to).stream().map(text -> Event.ofText("k", text)).toList();
    }

    private static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toList();
    }

    private long head() throws SQLException {
        return Sql.queryLong(
                database, "SELECT next_offset FROM eventsql.partition_head WHERE stream = '" + stream + "'");
    }

    private long logStart() throws SQLException {
        return Sql.queryLong(database, "SELECT log_start FROM eventsql.partition_head WHERE stream = '" + stream + "'");
    }

    private long bytes() throws SQLException {
        return Sql.queryLong(
                database,
                "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname LIKE 'events\\_" + stream
                        + "\\_\\_p0\\_s%' AND relkind = 'r'");
    }

    private List<String> segments() throws SQLException {
        return Sql.query(
                database,
                "SELECT 's' || split_part(relname, '_s', 2) FROM pg_class WHERE relname LIKE 'events\\_" + stream
                        + "\\_\\_p0\\_s%' AND relkind = 'r'");
    }
}
