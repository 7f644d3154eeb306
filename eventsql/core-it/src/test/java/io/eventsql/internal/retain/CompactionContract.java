package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.CompactionStatus;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventsMissingException;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.Retention;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Compaction that depends on how events are stored. Segments of 100 events are compacted; readers find what is left, and what compaction has not removed is still missing. */
@Timeout(120)
abstract class CompactionContract {
    static CompactionFixture fixture;
    static EventSql eventSql;

    final Random random = Seeds.random("CompactionIT");
    final StreamSpec stream = CompactionFixture.newStream(storage());
    final String name = stream.name();

    @BeforeAll
    static void open() {
        fixture = new CompactionFixture();
        eventSql = fixture.eventSql;
    }

    @AfterEach
    void stopCompacting() {
        fixture.stopCompacting();
    }

    @AfterAll
    static void close() {
        fixture.close();
    }

    /** Returns how the streams of these tests keep their events. */
    abstract Storage storage();

    List<String> randomKeys(int events, int keys) {
        return IntStream.range(0, events)
                .mapToObj(i -> random.nextInt(20) == 0 ? null : "k" + random.nextInt(keys))
                .toList();
    }

    /** Returns the offsets of the last event of each key below {@code end}, of all events without a key, and of all above. */
    static List<Long> left(List<String> keys, int end) {
        Map<String, Integer> last = new HashMap<>();
        for (int i = 0; i < end; i++) {
            last.put(keys.get(i), i);
        }
        return IntStream.range(0, keys.size())
                .filter(i -> i >= end || keys.get(i) == null || last.get(keys.get(i)) == i)
                .mapToObj(i -> (long) i)
                .toList();
    }

    EventPosition at(long offset) {
        return new EventPosition(name, 0, 0, offset);
    }

    static ConsumerSpec consumer(String stream) {
        return ConsumerSpec.of(stream, "c").withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(1));
    }

    PartitionState state() {
        return eventSql.consumer(name, "c").state().getFirst();
    }

    @Test
    void lastEventOfEachKey_stays_alsoAcrossSegmentsAndPasses() throws SQLException {
        eventSql.createStream(stream);
        List<String> keys = new ArrayList<>();
        for (int round = 1; round <= 4; round++) {
            List<String> more = randomKeys(230, 300);
            keys.addAll(more);
            fixture.publish(name, more);
            fixture.compact();
            List<Long> stored = fixture.offsets(name, 0);
            assertThat(stored).containsAll(left(keys, keys.size() / 100 * 100));
            assertThat(stored.getLast()).isEqualTo(keys.size() - 1L);
        }
        List<String> same =
                randomKeys(1_000, 300); // more than half of the clean ones: all dirty segments are compacted
        keys.addAll(same);
        fixture.publish(name, same);
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).isEqualTo(left(keys, keys.size() / 100 * 100));
    }

    @Test
    void consumer_getsWhatIsLeft_andCommitsTheHead() throws SQLException {
        assertConsumerGetsWhatIsLeft(HandlerMode.SINGLE);
    }

    void assertConsumerGetsWhatIsLeft(HandlerMode mode) throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(1_200, 5 + random.nextInt(100)));
        fixture.compact();
        fixture.publish(name, randomKeys(50, 10));
        List<Long> stored = fixture.offsets(name, 0);
        assertThat(stored).hasSizeLessThan(500);

        Queue<String> missing = new ConcurrentLinkedQueue<>();
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(name)
                .withPageEvents(1 + random.nextInt(200))
                .withKeyConcurrency(mode == HandlerMode.KEYS ? 8 : 1);
        EventSql process = EventSql.builder(fixture.cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void eventsMissing(ConsumerPartition partition, long first, long next) {
                        missing.add(first + "-" + next);
                    }
                })
                .build();
        try (process;
                Subscription ignored = subscribe(process, spec, mode, handled)) {
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(state().nextOffset()).isEqualTo(1_250));
            assertThat(state().status()).isEqualTo(Status.RUNNING);
        }
        List<Long> offsets = handled.events().stream().map(StoredEvent::offset).toList();
        if (mode == HandlerMode.KEYS) {
            assertThat(offsets).containsExactlyInAnyOrderElementsOf(stored);
        } else {
            assertThat(offsets).isEqualTo(stored);
        }
        assertThat(missing).isEmpty();
        assertThat(fixture.cluster.sum("""
                SELECT consumed_events FROM eventsql.consumer_offset o
                JOIN eventsql.consumer c USING (consumer_id) JOIN eventsql.stream s USING (stream_id)
                WHERE s.name = '%s' ORDER BY commit_number DESC LIMIT 1""".formatted(name))).isEqualTo(stored.size());
    }

    static Subscription subscribe(EventSql eventSql, ConsumerSpec spec, HandlerMode mode, Handled handled) {
        return switch (mode) {
            case BATCH -> eventSql.subscribeBatch(spec, handled::addAll);
            case TRANSACTIONAL -> eventSql.subscribeTransactional(spec, (event, connection) -> handled.add(event));
            case TRANSACTIONAL_BATCH ->
                eventSql.subscribeTransactionalBatch(spec, (events, connection) -> handled.addAll(events));
            default -> eventSql.subscribe(spec, handled::add);
        };
    }

    static void handle(List<StoredEvent> events, Handled handled) {
        if (events.size() > 1) {
            throw new IllegalStateException("a batch");
        }
        handled.addAll(events);
    }

    @Test
    void rowDeletedByHand_isMissingWhereNothingWasCompacted() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(250, 10));
        fixture.compact();
        TestStreams.delete(fixture.database, name, "e.event_offset IN (200, 230, 231)");
        for (long offset : new long[] {200, 230}) {
            assertThatExceptionOfType(EventsMissingException.class)
                    .isThrownBy(() -> eventSql.read(at(offset), 10))
                    .satisfies(e -> assertThat(e.first()).isEqualTo(at(offset)));
        }
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(name), handled::add)) {
            await().until(() -> state().status() == Status.STOPPED);
            assertThat(state().error()).contains("missing events [200, 201)");
            eventSql.consumer(name, "c").seek(at(201));
            eventSql.consumer(name, "c").resume();
            await().until(() -> state().status() == Status.STOPPED);
            assertThat(state().error()).contains("missing events [230, 232)");
        }
    }

    @Test
    void segmentDroppedByHand_isMissing_alsoIfItWasCompacted() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(300, 1_000));
        Sql.query(fixture.database, "SELECT eventsql.close_segments_v1(?, 0)", fixture.streamId(name));
        Sql.execute(
                fixture.database,
                "UPDATE eventsql.segment SET compacted_through = end_offset WHERE state = 'closed' AND stream_id = "
                        + fixture.streamId(name),
                "ALTER TABLE eventsql.events_" + name + "__p0 DETACH PARTITION eventsql.events_" + name + "__p0_s1",
                "DROP TABLE eventsql.events_" + name + "__p0_s1",
                "SELECT eventsql.reconcile_segments_v1(" + fixture.streamId(name) + ", 0)");
        assertThatExceptionOfType(EventsMissingException.class).isThrownBy(() -> eventSql.read(at(100), 10));
        try (Subscription ignored = eventSql.subscribe(consumer(name), event -> {})) {
            await().until(() -> state().status() == Status.STOPPED);
            assertThat(state().error()).contains("missing events [100, 200)");
        }
    }

    @Test
    void read_passesWhatWasRemoved() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(1_230, 30));
        fixture.compact();
        List<Long> stored = fixture.offsets(name, 0);
        for (long from : new long[] {0, 1, 777, 1_199, 1_200}) {
            assertThat(fixture.readAll(name, 0, from, 1 + random.nextInt(40)))
                    .extracting(StoredEvent::offset)
                    .containsExactlyElementsOf(
                            stored.stream().filter(offset -> offset >= from).toList());
        }
    }

    @Test
    void tombstone_goesAfterItsDelay_whenEveryConsumerHasPassedIt() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, "a", "b", "a", "c");
        long tombstone = fixture.appendTombstone(name, 0, "a");
        fixture.endSegment(stream);
        fixture.commit(name, "handled", tombstone + 1);
        fixture.commit(name, "behind", tombstone);
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).startsWith(1L, 3L, tombstone, tombstone + 1);

        fixture.age(name, Duration.ofHours(25));
        fixture.commit(name, "behind", tombstone); // not abandoned
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).contains(tombstone);
        fixture.commit(name, "behind", tombstone + 1);
        CompactionStatus before = eventSql.compactionStatus(0);
        fixture.age(name, Duration.ofHours(25));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).startsWith(1L, 3L, tombstone + 1);
        assertThat(eventSql.compactionStatus(0).removedTombstones()).isEqualTo(before.removedTombstones() + 1);
        assertThat(fixture.readAll(name, 0, 0, 10))
                .extracting(StoredEvent::offset)
                .startsWith(1L, 3L, tombstone + 1);
    }

    @Test
    void tombstone_itsKeyHasOlderEventsInDirtySegments_staysUntilTheyAreGone() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, "a");
        fixture.endSegment(stream);
        long tombstone = fixture.appendTombstone(name, 0, "a");
        fixture.endSegment(stream);
        fixture.age(name, Duration.ofHours(25));
        fixture.compact(); // removes the older event; the tombstone was not in the clean part
        assertThat(fixture.offsets(name, 0)).doesNotContain(0L).contains(tombstone);
        fixture.age(name, Duration.ofHours(25));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).doesNotContain(tombstone);
    }

    @Test
    void erasedEvent_isNoTombstone() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, "a", "b");
        eventSql.erase(ErasureSpec.of(name, "b"));
        fixture.endSegment(stream);
        fixture.compact();
        fixture.age(name, Duration.ofDays(30));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).startsWith(0L, 1L);
    }

    @Test
    void alter_switchesCompactionOnAndOff() throws SQLException {
        eventSql.createStream(stream.withCompaction(null));
        fixture.publish(name, randomKeys(300, 5));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).hasSize(300);
        Compaction hour = new Compaction(Duration.ofHours(1));
        eventSql.alterStream(stream.withCompaction(hour));
        assertThat(eventSql.streams()).contains(stream.withCompaction(hour));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).hasSizeLessThan(60);
        assertThat(indexes()).isEqualTo(fixture.segments(name).size());

        eventSql.alterStream(stream.withCompaction(null));
        fixture.publish(name, randomKeys(300, 5));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).hasSizeGreaterThan(300);
    }

    long indexes() throws SQLException {
        return Sql.queryLong(
                fixture.database,
                "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'events_" + name
                        + "\\_\\_p0%'"
                        + " AND (indexdef LIKE '%hashtextextended(key, %' OR indexdef LIKE '%block_keys_v1(%')"
                        + " AND tablename NOT IN (SELECT table_name FROM eventsql.replaced_table)");
    }

    @Test
    void retentionByEvents_countsWhatIsLeft() throws SQLException {
        StreamSpec limited = stream.withRetention(Retention.FOREVER.withMaxEvents(250));
        eventSql.createStream(limited);
        fixture.publish(name, IntStream.range(0, 100).mapToObj(i -> "k" + i).toList());
        fixture.publish(name, IntStream.range(0, 900).mapToObj(i -> "same").toList());
        fixture.compact();
        await().until(
                        () -> Sql.query(fixture.database, "SELECT eventsql.expire_v1()")
                                .getFirst(),
                        step -> step.equals("finished"));
        assertThat(fixture.offsets(name, 0)).hasSize(101).startsWith(0L);
    }

    @Test
    void rewrite_returnsTheSpace_readersMissNothing() throws SQLException {
        StreamSpec large = stream.withSegmentSize(5_000);
        eventSql.createStream(large);
        for (int i = 0; i < 10; i++) {
            fixture.publish(name, randomKeys(1_000, 10));
        }
        long before = size();
        CompactionStatus status = eventSql.compactionStatus(0);
        fixture.compactAll();
        assertThat(size()).isLessThan(before / (storage() == Storage.ROWS ? 5 : 3));
        assertThat(eventSql.compactionStatus(0).returnedBytes() - status.returnedBytes())
                .isGreaterThan(before / 2);
        assertThat(fixture.readAll(name, 0, 0, 100))
                .extracting(StoredEvent::offset)
                .containsExactlyElementsOf(fixture.offsets(name, 0));
    }

    @Test
    void clear_countsWhatIsLeft() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(550, 10));
        fixture.compact();
        long left = fixture.offsets(name, 0).size();
        var preview = eventSql.previewClear(name);
        assertThat(preview.events()).isEqualTo(left);
        assertThat(eventSql.clear(name, preview.confirmation())).isEqualTo(left);
        fixture.compact();
        fixture.publish(name, randomKeys(250, 10));
        fixture.compact();
        assertThat(fixture.readAll(name, 0, 550, 100))
                .extracting(StoredEvent::offset)
                .containsExactlyElementsOf(fixture.offsets(name, 0));
        assertThatExceptionOfType(OffsetOutOfRangeException.class).isThrownBy(() -> eventSql.read(at(0), 10));
    }

    long size() throws SQLException {
        return Sql.queryLong(
                fixture.database,
                "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('" + fixture.table(name) + "')");
    }

    @Test
    void merge_numberOfTablesDependsOnWhatIsLeft() throws SQLException {
        eventSql.createStream(stream);
        for (int i = 0; i < 20; i++) {
            fixture.publish(name, randomKeys(200, 20));
            fixture.compactAll();
            assertThat(fixture.segments(name)).hasSizeLessThan(20);
        }
        assertThat(fixture.segments(name).getFirst()).matches("0-\\d{4} closed");
    }

    List<String> closedSegments() throws SQLException {
        return fixture.segments(name).stream()
                .filter(segment -> segment.endsWith("closed"))
                .toList();
    }

    /** As a fetch whose statement began before the segments were merged, and reads their tables afterwards. */
    @Test
    void mergeAndRewrite_duringAFetch_itFindsAllEventsOfItsSnapshot() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(1_200, 20));
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT count(*) FROM eventsql.stream");
            // A lock that is not available, such as one of autovacuum, postpones it by a minute.
            await().atMost(Duration.ofSeconds(100)).untilAsserted(() -> {
                fixture.compact();
                assertThat(closedSegments()).hasSizeLessThan(3);
            });
            assertThat(Sql.query(reader, fetch(), fixture.streamId(name), name))
                    .containsExactlyElementsOf(IntStream.range(0, 1_000)
                            .mapToObj(Integer::toString)
                            .toList());
            reader.rollback();
        }
        String replaced = Sql.query(fixture.database, "SELECT min(table_name) FROM eventsql.replaced_table")
                .getFirst();
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() ->
                        Sql.execute(fixture.database, "UPDATE eventsql." + replaced + " SET published_at = now()"))
                .extracting(SQLException::getSQLState)
                .isEqualTo("40001");
        Sql.execute(
                fixture.database, "UPDATE eventsql.replaced_table SET replaced_at = replaced_at - interval '1 minute'");
        await().atMost(Duration.ofMinutes(1))
                .untilAsserted(
                        () -> { // up to twenty tables are dropped in a round
                            fixture.compact();
                            assertThat(Sql.queryLong(fixture.database, "SELECT count(*) FROM eventsql.replaced_table"))
                                    .isZero();
                        });
    }

    String fetch() {
        String parameters = "(NULL, ?, ?, ARRAY[0], ARRAY[0::bigint], 1000, ARRAY[10000000::bigint])";
        return storage() == Storage.ROWS
                ? "SELECT event_offset FROM eventsql.fetch_v2" + parameters
                : "SELECT event_offset - coalesce(distances[n], events - n) FROM eventsql.fetch_blocks_v1" + parameters
                        + " CROSS JOIN generate_series(1, events) AS n LIMIT 1000";
    }

    @Test
    void step_costIsBounded() throws SQLException {
        eventSql.createStream(stream.withSegmentSize(12_000));
        for (int i = 0; i < 13; i++) {
            fixture.publish(name, randomKeys(1_000, 1_000_000));
        }
        long stepMax = 0;
        String step = "";
        try (Connection connection = fixture.database.getConnection()) {
            while (!step.equals("finished")) {
                long before = position(connection);
                String phase = phase(connection);
                String plan = String.join(
                        "\n",
                        Sql.query(
                                connection,
                                "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT eventsql.compact_v1()"));
                if (phase(connection).equals(phase) && !phase.equals("idle") && !phase.equals("rewrite")) {
                    stepMax = Math.max(stepMax, position(connection) - before);
                    assertThat(buffers(plan)).as(plan).isLessThan(200_000); // 40 for each event
                }
                step = phase(connection).equals("idle") && !phase.equals("idle") ? "finished" : "";
            }
        }
        assertThat(stepMax).isBetween(1L, 5_000L + (storage() == Storage.ROWS ? 0 : 200)); // the events of a block
    }

    static long position(Connection connection) throws SQLException {
        return Long.parseLong(Sql.query(connection, "SELECT next_offset FROM eventsql.compaction_pass")
                .getFirst());
    }

    static String phase(Connection connection) throws SQLException {
        return Sql.query(connection, "SELECT phase FROM eventsql.compaction_pass")
                .getFirst();
    }

    static long buffers(String plan) {
        var hits = java.util.regex.Pattern.compile("Buffers: shared hit=(\\d+)").matcher(plan);
        return hits.find() ? Long.parseLong(hits.group(1)) : 0;
    }

    /** Most events go, but few bytes: without a snapshot that sees them, there is nothing more to return. */
    @Test
    void rewrite_smallEventsGoAndLargeOnesStay_isNotRepeated() throws SQLException {
        StreamSpec uneven = stream.withSegmentSize(1_000);
        eventSql.createStream(uneven);
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            events.add(Event.ofText("gone" + i % 600, "v"));
        }
        for (int i = 0; i < 1_000; i++) {
            events.add(i < 600 ? Event.tombstone("gone" + i) : Event.of("kept" + i, randomBytes(8_000)));
        }
        for (int i = 0; i < events.size(); i += 100) {
            eventSql.publisher().publishAll(name, events.subList(i, i + 100));
        }
        fixture.publish(name, "k");
        for (int day = 0; day < 3; day++) {
            fixture.compact();
            fixture.age(name, Duration.ofHours(25));
        }
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).hasSize(401);
        assertThat(Sql.query(
                        fixture.database,
                        "SELECT retry_at FROM eventsql.compaction_progress WHERE stream_id = ? AND retry_at IS NOT NULL",
                        fixture.streamId(name)))
                .isEmpty();
    }

    byte[] randomBytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }
}
