package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.BlockAppendStatement;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.SqlSchema;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What streams that store blocks do, and what they refuse. */
@Timeout(120)
class BlocksStreamIT {
    private static final BlockAppendStatement APPEND = new BlockAppendStatement(new SqlSchema("eventsql"));

    private static TestCluster cluster;
    private static EventSql eventSql;
    private static DataSource database;

    private final String stream = TestStreams.newName();
    private final StreamSpec spec =
            StreamSpec.of(stream).withPartitions(1).withSegmentSize(100).withStorage(Storage.BLOCKS);

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
        database = cluster.dataSources().getFirst();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    @BeforeEach
    void createStream() {
        eventSql.createStream(spec);
    }

    private void publish(int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("k" + i, "e" + i))
                                .toList());
    }

    private List<String> read(long from) {
        return eventSql.read(new EventPosition(stream, 0, 0, from), 1_000).stream()
                .map(StoredEvent::text)
                .toList();
    }

    private int streamId() throws SQLException {
        return streamId(stream);
    }

    private static int streamId(String name) throws SQLException {
        return (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + name + "'");
    }

    private static BlockAppendStatement.Blocks blocks(String name, int streamId, int events) {
        BlockAppendStatement.Packer packer = new BlockAppendStatement.Packer(1);
        packer.begin(name, streamId, 0);
        for (int i = 0; i < events; i++) {
            packer.add(
                    "k" + i, ("e" + i).getBytes(StandardCharsets.UTF_8), i % 2 == 0 ? null : "{\"n\":\"" + i + "\"}");
        }
        return packer.finish();
    }

    private static long[] append(UUID producer, long number, BlockAppendStatement.Blocks batch) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return APPEND.execute(connection, producer, number, MapFence.of(1), null, batch);
        }
    }

    private static void assertRejected(String state, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(state));
    }

    @Test
    void resentBatchAcrossSegmentEnds_isStoredOnce() throws SQLException {
        publish(0, 90);
        UUID producer = UUID.randomUUID();
        BlockAppendStatement.Blocks batch = blocks(stream, streamId(), 30);
        assertThat(append(producer, 1, batch)).containsExactly(90);
        assertThat(append(producer, 1, batch)).containsExactly(90);
        assertThat(read(88)).hasSize(32).startsWith("e88", "e89", "e0").endsWith("e28", "e29");
        assertRejected(SqlErrors.STALE_BATCH, () -> append(producer, 0, batch));
    }

    @Test
    void batchWithoutSegments_isRolledBackAndStoredWhenTheyExist() throws SQLException {
        UUID producer = UUID.randomUUID();
        BlockAppendStatement.Blocks batch = blocks(stream, streamId(), 1_000);
        assertThatThrownBy(() -> append(producer, 1, batch))
                .isInstanceOfSatisfying(
                        SQLException.class,
                        e -> assertThat(SqlErrors.isMissingSegment(e)).isTrue());
        assertThat(read(0)).isEmpty();
        Sql.query(database, "SELECT eventsql.ensure_segments_v1(NULL, ?, 0, 1000)::text", streamId());
        append(producer, 1, batch);
        assertThat(read(0)).hasSize(1_000);
    }

    @Test
    void blocksForStreamOfRows_areUnpacked() throws SQLException {
        String rows = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(rows).withPartitions(1).withSegmentSize(100));
        append(UUID.randomUUID(), 1, blocks(rows, streamId(rows), 150));
        assertThat(Sql.query(
                        database,
                        "SELECT event_offset || key || convert_from(value, 'UTF8') || coalesce(headers ->> 'n', '')"
                                + " FROM eventsql.events_" + rows + " ORDER BY event_offset"))
                .containsExactlyElementsOf(IntStream.range(0, 150)
                        .mapToObj(i -> i + "k" + i + "e" + i + (i % 2 == 0 ? "" : String.valueOf(i)))
                        .toList());
    }

    @Test
    void rowsForStreamOfBlocks_arePacked() throws SQLException {
        AppendStatement.Rows rows = new AppendStatement.Rows(
                new String[] {stream},
                new int[] {streamId()},
                new int[] {0},
                new int[] {2},
                new String[] {"a", null},
                new byte[][] {null, {1}},
                new String[] {null, "{\"n\":\"1\"}"});
        try (Connection connection = database.getConnection()) {
            new AppendStatement(new SqlSchema("eventsql"))
                    .execute(connection, UUID.randomUUID(), 1, MapFence.of(1), null, rows);
        }
        List<StoredEvent> read = eventSql.read(new EventPosition(stream, 0, 0, 0), 10);
        assertThat(read).hasSize(2);
        assertThat(read.getFirst().isTombstone()).isTrue();
        assertThat(read.getLast().key()).isNull();
        assertThat(read.getLast().headers()).containsEntry("n", "1");
    }

    @Test
    void batchOfBothStorages_isStored() {
        String rows = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(rows).withPartitions(1));
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 500)
                .mapToObj(i -> eventSql.publisher().publishAsync(i % 2 == 0 ? stream : rows, Event.ofText("e" + i)))
                .toList();
        futures.forEach(CompletableFuture::join);
        assertThat(read(0)).hasSize(250).startsWith("e0", "e2", "e4").endsWith("e496", "e498");
    }

    @Test
    void fetchOfThePreviousRelease_isRefused() {
        publish(0, 3);
        assertRejected(
                SqlErrors.OTHER_STORAGE,
                () -> Sql.query(
                        database,
                        "SELECT page FROM eventsql.fetch_v2(NULL, ?, ?, '{0}', '{0}', 10, '{1000}')",
                        streamId(),
                        stream));
    }

    @Test
    void corruptBlock_isUndecodableAndNothingElse() throws SQLException {
        publish(0, 5);
        publish(5, 10);
        publish(10, 15);
        Sql.execute(
                database,
                "UPDATE eventsql.events_" + stream
                        + "__blocks SET block = set_byte(block, 7, 250) WHERE event_offset = 9");
        List<String> handled = new CopyOnWriteArrayList<>();
        try (Subscription subscription = eventSql.subscribe(
                ConsumerSpec.of(stream, "c").withFailurePolicy(FailurePolicy.PARK_KEY),
                event -> handled.add(event.text()))) {
            await().atMost(Duration.ofSeconds(120)).until(() -> handled.contains("e14"));
        }
        assertThat(handled).doesNotContain("e5", "e6", "e7", "e8", "e9").hasSize(10);
    }

    @Test
    void whatIsNotSupported_isRefused() throws SQLException {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.alterStream(spec.withStorage(Storage.ROWS)))
                .withMessageContaining("cannot become ROWS");
    }

    @Test
    void clearAndDelete_leaveNothing() throws SQLException {
        publish(0, 250);
        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        assertThat(Sql.queryLong(database, "SELECT count(*) FROM eventsql.events_" + stream))
                .isZero();
        publish(250, 260);
        assertThat(read(250)).startsWith("e250").hasSize(10);
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
        assertThat(Sql.query(database, "SELECT relname FROM pg_class WHERE relname ~ ?", "^events_" + stream + "(_|$)"))
                .isEmpty();
        eventSql.createStream(spec.withStorage(Storage.ROWS));
        publish(0, 3);
        assertThat(read(0)).hasSize(3);
    }

    @Test
    void retention_expiresSegments() throws SQLException {
        eventSql.alterStream(spec.withRetention(Retention.FOREVER.withMaxEvents(1_000L)));
        publish(0, 3_000);
        String logStart = "SELECT log_start FROM eventsql.stream_partition WHERE stream_id = " + streamId();
        for (int i = 0; i < 200 && Sql.queryLong(database, logStart) == 0; i++) {
            Sql.query(database, "SELECT eventsql.expire_v1('0')");
        }
        long start = Sql.queryLong(database, logStart);
        assertThat(start).isPositive();
        assertThat(read(start)).startsWith("e" + start);
    }

    @Test
    void grantsOnTheView_applyToBlocks() throws SQLException {
        Sql.execute(TestCluster.server().adminDataSource(), "CREATE ROLE report_of_blocks");
        Sql.execute(
                database,
                "GRANT SELECT ON eventsql.events_" + stream + " TO report_of_blocks",
                "SELECT eventsql.apply_stream_grants_v1('" + stream + "')");
        assertThat(Sql.query(
                        database,
                        "SELECT relname FROM pg_class WHERE relname ~ ? AND relkind IN ('r', 'p', 'v')"
                                + " AND NOT has_table_privilege('report_of_blocks', oid, 'SELECT')",
                        "^events_" + stream + "(_|$)"))
                .isEmpty();
    }
}
