package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What cannot be read is said, and says where reading may continue. */
@Timeout(120)
class ReadConditionsIT {
    private static TestDatabases databases;
    private static DataSource database;
    private static EventSql eventSql;

    @BeforeAll
    static void start() {
        databases = new TestDatabases(1);
        database = databases.shards.get(0);
        eventSql = databases.eventSql;
    }

    @AfterAll
    static void stop() {
        databases.close();
    }

    /** Creates a stream of one partition with these events, the text being the offset. */
    private static StreamPartition create(StreamSpec spec, int events) {
        eventSql.createStream(spec.withPartitions(1).withSegmentSize(100));
        publish(spec.name(), 0, events);
        return new StreamPartition(spec.name(), 0, 0);
    }

    private static void publish(String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("k" + i % 3, "" + i))
                                .toList());
    }

    private static EventReader open() {
        return EventReader.open(List.of(database));
    }

    /** Reads pages until the head, or until one fails. */
    private static ReadPosition readToHead(
            EventReader reader, StreamPartition partition, ReadPosition from, List<LogEvent> events) {
        ReadPosition position = from;
        while (true) {
            PartitionPage page = reader.read(partition, position);
            events.addAll(page.events());
            position = page.next();
            if (page.isAtHead()) {
                return position;
            }
        }
    }

    @Test
    void read_belowLogStartOrBeyondHead_isOutOfRange() {
        StreamPartition partition = create(StreamSpec.of("cleared"), 50);
        try (EventReader reader = open()) {
            PartitionPage first = reader.read(partition, ReadPosition.at(0));
            eventSql.clear(
                    partition.stream(),
                    eventSql.previewClear(partition.stream()).confirmation());
            publish(partition.stream(), 50, 60);
            for (ReadPosition lost : List.of(ReadPosition.at(0), ReadPosition.at(49))) {
                assertThatExceptionOfType(OffsetOutOfRangeException.class)
                        .isThrownBy(() -> reader.read(partition, lost))
                        .satisfies(e -> assertThat(e.offset()).isEqualTo(lost.offset()))
                        .satisfies(e -> assertThat(e.logStart()).isEqualTo(50))
                        .satisfies(e -> assertThat(e.head()).isEqualTo(60));
            }
            // The incarnation is the same: the page itself says so.
            ReadPosition former = new ReadPosition(20, first.next().incarnation(), 19, null);
            assertThatExceptionOfType(OffsetOutOfRangeException.class).isThrownBy(() -> reader.read(partition, former));
            assertThatExceptionOfType(OffsetOutOfRangeException.class)
                    .isThrownBy(() -> reader.read(partition, ReadPosition.at(61)));
            assertThat(reader.read(partition, ReadPosition.at(50)).events()).hasSize(10);
            assertThat(reader.read(partition, ReadPosition.at(60)).isAtHead()).isTrue();
        }
    }

    @Test
    void read_deletedRows_areMissing() {
        StreamPartition partition = create(StreamSpec.of("holes"), 50);
        TestDatabases.execute(database, "DELETE FROM eventsql.events_holes WHERE event_offset IN (7, 8, 30)");
        try (EventReader reader = open()) {
            PartitionPage page = reader.read(partition, ReadPosition.at(0));
            assertThat(page.events()).extracting(LogEvent::offset).endsWith(6L).hasSize(7);
            assertThat(page.isAtHead()).isFalse();
            assertThatExceptionOfType(EventsMissingException.class)
                    .isThrownBy(() -> reader.read(partition, page.next()))
                    .satisfies(e -> assertThat(e.offset()).isEqualTo(7))
                    .satisfies(e -> assertThat(e.nextOffset()).isEqualTo(9));

            StreamCursor cursor = reader.cursor(
                    CursorSpec.of("holes").from(StreamPosition.atOffset(30)).until(StreamPosition.LATEST));
            assertThatExceptionOfType(EventsMissingException.class).isThrownBy(() -> cursor.poll(Duration.ZERO));
            cursor.seek(partition, 31);
            assertThat(cursor.poll(Duration.ZERO)).hasSize(19);
            assertThat(cursor.isFinished()).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_compacted_leavesOutWhatWasRemoved(Storage storage) {
        String stream = "compacted_" + storage.name().toLowerCase(Locale.ROOT);
        StreamPartition partition =
                create(StreamSpec.of(stream).withStorage(storage).withCompaction(Compaction.DEFAULT), 350);
        TestDatabases.query(
                database,
                "SELECT eventsql.close_segments_v1(stream_id, 0)::text FROM eventsql.stream WHERE name = ?",
                stream);
        String step = "";
        for (int rounds = 0; rounds < 2; ) {
            step = TestDatabases.query(database, "SELECT eventsql.compact_v1()").get(0);
            rounds += step.equals("finished") ? 1 : 0;
        }
        List<String> stored = TestDatabases.query(
                database, "SELECT event_offset FROM eventsql.events_" + stream + " ORDER BY event_offset");
        assertThat(stored).hasSizeLessThan(100);
        try (EventReader reader =
                EventReader.open(List.of(database), ReaderSettings.defaults().withPage(3, 100_000))) {
            List<LogEvent> events = new ArrayList<>();
            ReadPosition end = readToHead(reader, partition, ReadPosition.at(0), events);
            assertThat(events).extracting(event -> event.offset() + "").isEqualTo(stored);
            assertThat(end.offset()).isEqualTo(350);
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_erased_saysSo(Storage storage) {
        String stream = "erased_" + storage.name().toLowerCase(Locale.ROOT);
        StreamPartition partition = create(StreamSpec.of(stream).withStorage(storage), 30);
        eventSql.publisher().publish(stream, Event.tombstone("k2"));
        eventSql.erase(stream, "k1");
        try (EventReader reader = open()) {
            List<LogEvent> events = new ArrayList<>();
            readToHead(reader, partition, ReadPosition.at(0), events);
            assertThat(events)
                    .hasSize(31)
                    .allSatisfy(event -> assertThat(event.isErased()).isEqualTo("k1".equals(event.key())))
                    .allSatisfy(event -> assertThat(event.isTombstone()).isEqualTo(event.offset() == 30));
        }
    }

    @Test
    void read_undecodableKeyInBlock_isReported() {
        StreamPartition partition = create(StreamSpec.of("undecodable").withStorage(Storage.BLOCKS), 10);
        // The key of the second event, after its directory: one byte that begins no character.
        TestDatabases.execute(database, """
                UPDATE eventsql.events_undecodable__blocks
                SET block = set_byte(block, 12 * events + 4
                    + abs(eventsql.block_number_v1(block, 3)) - 1, 255)
                WHERE event_offset = 9""");
        try (EventReader reader = open()) {
            PartitionPage page = reader.read(partition, ReadPosition.at(0));
            assertThat(page.events()).hasSize(1);
            assertThatExceptionOfType(UndecodableEventException.class)
                    .isThrownBy(() -> reader.read(partition, page.next()))
                    .satisfies(e -> assertThat(e.offset()).isEqualTo(1));
            assertThat(reader.read(partition, ReadPosition.at(2)).events()).hasSize(8);
        }
    }

    @Test
    void read_damagedBlock_isReportedWithItsPosition_andCanBePassed() {
        StreamPartition partition = create(StreamSpec.of("damaged").withStorage(Storage.BLOCKS), 3);
        publish("damaged", 3, 6);
        publish("damaged", 6, 9);
        TestDatabases.execute(
                database,
                "UPDATE eventsql.events_damaged__blocks SET block = substring(block FOR 20) WHERE event_offset = 5");
        try (EventReader reader = open()) {
            PartitionPage page = reader.read(partition, ReadPosition.at(0));
            assertThat(page.events()).extracting(LogEvent::offset).containsExactly(0L, 1L, 2L);
            assertThatExceptionOfType(UndecodableEventException.class)
                    .isThrownBy(() -> reader.read(partition, page.next()))
                    .satisfies(e -> assertThat(e.offset()).isEqualTo(3))
                    .satisfies(e -> assertThat(e.partition()).isEqualTo(partition))
                    .withMessageContaining("a row is no block of 3 events");
            assertThatExceptionOfType(UndecodableEventException.class)
                    .isThrownBy(() -> reader.read(partition, ReadPosition.at(5)))
                    .satisfies(e -> assertThat(e.offset()).isEqualTo(5));
            assertThat(reader.read(partition, ReadPosition.at(6)).events())
                    .extracting(LogEvent::offset)
                    .containsExactly(6L, 7L, 8L);
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_otherIncarnation_comparesTheLastEvent(Storage storage) {
        String stream = "restored_" + storage.name().toLowerCase(Locale.ROOT);
        StreamPartition partition = create(StreamSpec.of(stream).withStorage(storage), 30);
        String table = "eventsql.events_" + stream + (storage == Storage.ROWS ? "" : "__blocks");
        try (EventReader reader = open()) {
            ReadPosition end = readToHead(reader, partition, ReadPosition.at(0), new ArrayList<>());

            TestDatabases.query(database, "SELECT eventsql.declare_restored('test')");
            publish(stream, 30, 31);
            PartitionPage intact = reader.read(partition, end);
            assertThat(intact.events()).extracting(LogEvent::text).containsExactly("30");
            assertThat(intact.next().incarnation()).isNotEqualTo(end.incarnation());

            TestDatabases.query(database, "SELECT eventsql.declare_restored('test')");
            TestDatabases.execute(database, "UPDATE " + table + " SET published_at = published_at + interval '1 us'");
            assertThatExceptionOfType(HistoryLostException.class)
                    .isThrownBy(() -> reader.read(partition, end))
                    .satisfies(e -> assertThat(e.position()).isEqualTo(end))
                    .withMessageContaining("at offset 29 was published");
            assertThat(reader.read(partition, ReadPosition.at(30)).events()).hasSize(1);

            ReadPosition beyond = new ReadPosition(40, "other", 39, end.lastPublishedAt());
            assertThatExceptionOfType(HistoryLostException.class)
                    .isThrownBy(() -> reader.read(partition, beyond))
                    .withMessageContaining("its next offset is 31 now");
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_historyLostBeforeAnythingWasRead_comparesTheEventBeforeTheStart(Storage storage) {
        String stream = "started_" + storage.name().toLowerCase(Locale.ROOT);
        StreamPartition partition = create(StreamSpec.of(stream).withStorage(storage), 30);
        String table = "eventsql.events_" + stream + (storage == Storage.ROWS ? "" : "__blocks");
        try (EventReader reader = open()) {
            List<ReadPosition> starts = Stream.of(
                            StreamPosition.LATEST,
                            StreamPosition.at(Instant.now().plusSeconds(3_600)))
                    .map(start -> reader.cursor(CursorSpec.of(stream).from(start))
                            .positions()
                            .get(partition))
                    .toList();
            assertThat(starts).extracting(ReadPosition::offset).containsExactly(30L, 30L);

            TestDatabases.query(database, "SELECT eventsql.declare_restored('test')");
            publish(stream, 30, 40);
            for (ReadPosition start : starts) {
                assertThat(reader.read(partition, start).events()).hasSize(10);
            }

            TestDatabases.execute(database, "UPDATE " + table + " SET published_at = published_at + interval '1 us'");
            for (ReadPosition start : starts) {
                assertThatExceptionOfType(HistoryLostException.class)
                        .isThrownBy(() -> reader.read(partition, start))
                        .withMessageContaining("at offset 29 was published");
            }
        }
    }

    /** Partitions of a growth exist before it is decided, and readers find them. */
    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_growthIsCancelledAfterItsPartitionsWereFound_continues(Storage storage) {
        String stream = "ungrown_" + storage.name().toLowerCase(Locale.ROOT);
        create(StreamSpec.of(stream).withStorage(storage), 10);
        TestDatabases.query(
                database,
                "SELECT eventsql.prepare_growth_v1(stream_id, 3) FROM eventsql.stream WHERE name = ?",
                stream);
        try (EventReader reader = open();
                EventReader restored = open()) {
            List<PageRequest> found = reader.ranges(stream).stream()
                    .map(range -> new PageRequest(range.partition(), ReadPosition.at(0)))
                    .toList();
            assertThat(found).hasSize(3);
            List<PageRequest> read = reader.read(found).stream()
                    .map(page -> new PageRequest(page.partition(), page.next()))
                    .toList();
            eventSql.cancelGrowth(stream);
            publish(stream, 10, 20);
            assertThat(reader.ranges(stream)).hasSize(1);
            // By positions of the same history, and by those that are checked first.
            assertOnlyTheFirstHasEvents(reader.read(read), 10);
            assertOnlyTheFirstHasEvents(restored.read(found), 20);
            assertOnlyTheFirstHasEvents(restored.read(read), 10);

            StreamPartition removed = read.get(1).partition();
            ReadPosition used = new ReadPosition(1, read.get(1).position().incarnation(), 0, Instant.EPOCH);
            for (ReadPosition position : List.of(ReadPosition.at(1), used)) {
                assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(() -> reader.read(removed, position));
            }

            eventSql.grow(stream, 3);
            publish(stream, 20, 60);
            assertThat(reader.read(read)).flatExtracting(PartitionPage::events).hasSize(50);
        }
    }

    private static void assertOnlyTheFirstHasEvents(List<PartitionPage> pages, int events) {
        assertThat(pages).hasSize(3);
        assertThat(pages.get(0).events()).hasSize(events);
        assertThat(pages.subList(1, 3))
                .allMatch(page -> page.events().isEmpty()
                        && page.isAtHead()
                        && page.next().offset() == 0);
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void read_streamDeletedAndCreatedAgain_isAnotherHistory(Storage storage) {
        String stream = "again_" + storage.name().toLowerCase(Locale.ROOT);
        StreamSpec spec = StreamSpec.of(stream).withStorage(storage);
        StreamPartition partition = create(spec, 30);
        try (EventReader reader = open()) {
            ReadPosition end = readToHead(reader, partition, ReadPosition.at(0), new ArrayList<>());
            eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
            assertThatExceptionOfType(UnknownStreamException.class)
                    .isThrownBy(() -> reader.read(partition, ReadPosition.at(0)));
            create(spec, 40);
            assertThatExceptionOfType(HistoryLostException.class).isThrownBy(() -> reader.read(partition, end));
        }
    }

    /** What cannot be read on one shard is not hidden by the events of another. */
    @Test
    void poll_oneShardCannotBeReadAndAnotherHasEvents_failsAtTheNextPoll() throws Exception {
        try (TestDatabases two = new TestDatabases(2);
                EventReader reader = EventReader.open(two.shards)) {
            EventSql both = two.eventSql;
            both.createStream(StreamSpec.of("spread").withPartitions(1));
            List<Event> events = IntStream.range(0, 40)
                    .mapToObj(i -> Event.ofText("k" + i, "v"))
                    .toList();
            both.publisher().publishAll("spread", events);
            TestDatabases.execute(two.shards.getFirst(), "DELETE FROM eventsql.events_spread WHERE event_offset = 0");
            StreamCursor cursor = reader.cursor(CursorSpec.of("spread"));
            assertThat(cursor.poll(Duration.ZERO)).isNotEmpty();
            both.publisher().publishAll("spread", events);
            assertThatExceptionOfType(EventsMissingException.class).isThrownBy(() -> cursor.poll(Duration.ZERO));
            assertThat(cursor.poll(Duration.ZERO)).isNotEmpty();
        }
    }
}
