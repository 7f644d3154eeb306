package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jooq.Configuration;
import org.jooq.DSLContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Invalid input against a real database: the error names field and limit, nothing is stored, other calls are unaffected.
 * The rows of all tables are counted before and after each test. The {@code *SpecTest}s, {@code SettingsTest} and {@code
 * EventValidatorTest} cover the format and limits of single fields.
 */
@Timeout(60)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class InvalidInputIT {
    private static final String STREAM = "orders";
    private static final int PARTITIONS = 3;
    /** For each table, partitioned ones with all of their segments, a query that returns its name and the number of its rows. */
    private static final String COUNTS = """
            SELECT format('SELECT %L || count(*) FROM %s', t.name || ' ', t.name)
            FROM (
                SELECT format('%I.%I', n.nspname, c.relname) AS name
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
                  AND n.nspname !~ '^(pg_|information_schema)') t""";

    private static TestCluster cluster;
    private static EventSql eventSql;
    private static EventPublisher publisher;

    /** The number of rows of each table; empty: to be counted, because a test has stored events. */
    private Map<String, Long> rowsBefore = Map.of();
    /** Whether the test stores events on purpose. */
    private boolean mayStore;

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(2);
        eventSql = cluster.open(settings -> settings.maxBatchEvents(100).maxBatchBytes(100_000));
        publisher = eventSql.publisher();
        eventSql.createStream(StreamSpec.of(STREAM).withPartitions(PARTITIONS));
        publisher.publish(STREAM, Event.ofText("first")); // creates the first segments
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    @BeforeEach
    void countBefore() throws SQLException {
        mayStore = false;
        if (rowsBefore.isEmpty()) {
            rowsBefore = rows();
        }
    }

    @AfterEach
    void nothingIsStored() throws SQLException {
        Map<String, Long> before = rowsBefore;
        rowsBefore = Map.of();
        if (!mayStore) {
            assertThat(rows()).isEqualTo(before);
            rowsBefore = before;
        }
    }

    private static Map<String, Long> rows() throws SQLException {
        Map<String, Long> rows = new TreeMap<>();
        for (DataSource database : cluster.dataSources()) {
            for (String row : Sql.query(database, String.join(" UNION ALL ", Sql.query(database, COUNTS)))) {
                int end = row.lastIndexOf(' ');
                rows.merge(row.substring(0, end), Long.parseLong(row.substring(end + 1)), Long::sum);
            }
        }
        rows.values().removeIf(count -> count == 0); // empty segments are added in the background
        rows.remove("eventsql.segment");
        return rows;
    }

    private static void assertRejected(String field, String limit, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .withMessageStartingWith(field + " ")
                .withMessageContaining(limit)
                .satisfies(e -> assertThat(e.field()).isEqualTo(field));
    }

    // Names

    @ParameterizedTest
    @ValueSource(strings = {"select", "null", "consumer_offset", "pg_class", "p0"})
    void createStream_keywordOrLibraryTableName_works(String name) throws SQLException {
        mayStore = true;
        eventSql.createStream(
                StreamSpec.of(name).withPartitions(1).withSegmentSize(100).asJson());
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(name, name), handled::add)) {
            List<EventPosition> positions = publisher.publishAll(
                    name,
                    IntStream.range(0, 60)
                            .mapToObj(i -> Event.ofText("key-" + i, "{\"a\": 1}"))
                            .toList());
            handled.awaitSize(60).assertOnceAndInOrder();
            assertThat(eventSql.read(positions.getFirst(), 1)).hasSize(1);
        }
        assertThat(eventSql.positions(name, name).stream()
                        .mapToLong(ConsumerPosition::nextOffset)
                        .sum())
                .isEqualTo(60);
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.events_" + name + "__json WHERE value @> '{\"a\": 1}'"))
                .isEqualTo(60);
    }

    @Test
    void createStream_longestName_works() {
        mayStore = true;
        String stream = "a".repeat(StreamSpec.NAME_LENGTH_MAX);
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).asJson());
        eventSql.createStream(
                StreamSpec.of(stream.substring(1)).withPartitions(2).withSegmentSize(100));
        Handled handled = new Handled();
        String consumer = "c".repeat(ConsumerSpec.NAME_LENGTH_MAX);
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, consumer), handled::add)) {
            for (int i = 0; i < 5; i++) {
                publisher.publishAll(
                        stream,
                        IntStream.range(0, 90)
                                .mapToObj(n -> Event.ofText("k", "" + n))
                                .toList());
            }
            handled.awaitSize(450).assertOnceAndInOrder();
        }
    }

    @Test
    void createStream_invalidName_isRejected() {
        List<String> names = Arrays.asList(
                null,
                "",
                "x'; DROP TABLE eventsql.stream; --",
                "x\"; DROP SCHEMA eventsql CASCADE; --",
                "orders; SELECT pg_sleep(10)",
                "-orders",
                ".orders",
                "_orders",
                "orders/p0",
                "\u043erders", // Cyrillic o
                "orders\u0000",
                "orders ",
                "$1",
                "%s",
                "{0}");
        assertThat(names).allSatisfy(name -> {
            assertRejected("stream.name", "at most 100 characters", () -> eventSql.createStream(StreamSpec.of(name)));
            assertRejected(
                    "consumer.stream",
                    "at most 100 characters",
                    () -> eventSql.subscribe(ConsumerSpec.of(name, "c"), event -> {}));
            assertRejected(
                    "consumer.name",
                    "at most 60 characters",
                    () -> eventSql.subscribe(ConsumerSpec.of(STREAM, name), event -> {}));
        });
    }

    @Test
    void anyCall_unknownStream_isRejectedNamingIt() {
        List<String> names = List.of(
                "",
                "nowhere",
                "x'; DROP TABLE eventsql.stream; --",
                "orders\"",
                "ORDERS",
                "orders__p0",
                "orders\u0000",
                "\ud83d");
        assertThat(names).allSatisfy(InvalidInputIT::assertUnknown);
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> eventSql.subscribe(ConsumerSpec.of("nowhere", "c"), event -> {}));
    }

    private static void assertUnknown(String name) {
        List<ThrowingCallable> calls = List.of(
                () -> publisher.publish(name, Event.ofText("x")),
                () -> publisher.publishAsync(name, Event.ofText("x")),
                () -> publisher.publishAll(name, List.of(Event.ofText("x"))),
                () -> publisher.publishAllAsync(name, List.of()),
                () -> eventSql.read(new EventPosition(name, 0, 0, 0), 1),
                () -> eventSql.positions(name, "c"));
        assertThat(calls)
                .allSatisfy(call -> assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(call)
                        .satisfies(e -> assertThat(e.getMessage())
                                .contains(name.codePoints().noneMatch(Character::isISOControl) ? name : "\\u0000")));
    }

    @Test
    void positions_unknownConsumerName_areEmpty() {
        for (String name : List.of("", "unknown", "x'; DROP TABLE eventsql.stream; --", "\"")) {
            assertThat(eventSql.positions(STREAM, name)).isEmpty();
        }
    }

    // Events

    private record InvalidEvent(String field, String limit, Event event) {
        @Override
        public String toString() {
            return field + " " + limit;
        }
    }

    private static List<InvalidEvent> invalidEvents() {
        return List.of(
                new InvalidEvent("event.key", "empty", Event.ofText("", "x")),
                new InvalidEvent("event.key", "limit is 1024", Event.ofText("k".repeat(1_025), "x")),
                new InvalidEvent("event.key", "limit is 1024", Event.ofText("\u00e4".repeat(513), "x")),
                new InvalidEvent("event.key", "NUL", Event.ofText("a\u0000b", "x")),
                new InvalidEvent("event.key", "surrogate", Event.ofText("a\ud83d", "x")),
                new InvalidEvent(
                        "event.value",
                        "limit is 4194304",
                        Event.of("k", new byte[Settings.DEFAULT_MAX_EVENT_BYTES + 1])),
                new InvalidEvent(
                        "event.headers", "empty name", Event.ofText("x").withHeader("", "y")),
                new InvalidEvent("event.headers", "NUL", Event.ofText("x").withHeader("a\u0000", "y")),
                new InvalidEvent("event.headers[a]", "NUL", Event.ofText("x").withHeader("a", "\u0000")),
                new InvalidEvent(
                        "event.headers[a]", "surrogate", Event.ofText("x").withHeader("a", "\udc00")),
                new InvalidEvent(
                        "event.headers",
                        "limit is 16384",
                        Event.ofText("x").withHeader("a", "y".repeat(Settings.DEFAULT_MAX_HEADERS_BYTES))));
    }

    @Test
    void publish_invalidEvent_isRejectedByEveryMethod() {
        assertThat(invalidEvents()).allSatisfy(InvalidInputIT::assertRejectedByEveryMethod);
    }

    private static void assertRejectedByEveryMethod(InvalidEvent invalid) {
        List<Event> withValidOnes = List.of(Event.ofText("k", "good"), invalid.event(), Event.ofText("l", "good"));
        assertRejected(invalid.field(), invalid.limit(), () -> publisher.publish(STREAM, invalid.event()));
        assertRejected(invalid.field(), invalid.limit(), () -> publisher.publishAsync(STREAM, invalid.event()));
        assertRejected(invalid.field(), invalid.limit(), () -> publisher.publishAll(STREAM, withValidOnes));
        assertRejected(invalid.field(), invalid.limit(), () -> publisher.publishAllAsync(STREAM, withValidOnes));
    }

    @Test
    void publishAll_tooManyEvents_isRejectedNamingTheLimit() {
        List<Event> events = Collections.nCopies(101, Event.ofText("x"));
        assertRejected(
                "events",
                "limit of one call is 100 (settings.maxBatchEvents)",
                () -> publisher.publishAll(STREAM, events));
        assertRejected("events", "has 101 events", () -> publisher.publishAllAsync(STREAM, events));
    }

    @Test
    void publishAll_tooManyBytes_isRejectedNamingTheLimit() {
        List<Event> events = Collections.nCopies(4, Event.of(new byte[30_000]));
        assertRejected(
                "events",
                "limit of one call is 100000 (settings.maxBatchBytes)",
                () -> publisher.publishAll(STREAM, events));
    }

    @Test
    void publish_atAllLimits_isStored() {
        mayStore = true;
        String key = "k".repeat(Settings.DEFAULT_MAX_KEY_BYTES);
        String header = "h".repeat(Settings.DEFAULT_MAX_HEADERS_BYTES - "{\"a\":\"\"}".length());
        Event event = Event.of(key, new byte[Settings.DEFAULT_MAX_EVENT_BYTES]).withHeader("a", header);
        StoredEvent stored = eventSql.read(publisher.publish(STREAM, event), 1).getFirst();
        assertThat(new Event(stored.key(), stored.value(), stored.headers())).isEqualTo(event);
        assertThat(publisher.publishAll(STREAM, Collections.nCopies(100, Event.ofText("k", "x"))))
                .hasSize(100);
    }

    private record Missing(String field, ThrowingCallable call) {
        @Override
        public String toString() {
            return field;
        }
    }

    private static List<Missing> missingArguments() {
        Event event = Event.ofText("x");
        ConsumerSpec spec = ConsumerSpec.of(STREAM, "c");
        Outbox outbox = eventSql.outbox();
        Connection connection = unusableConnection();
        EventHandler handler = received -> {};
        TransactionalEventHandler transactional = (received, c) -> {};
        TransactionalEventBatchHandler transactionalBatch = (received, c) -> {};
        TransactionBoundary boundary = (shard, work) -> {};
        return List.of(
                new Missing("stream", () -> publisher.publish(null, event)),
                new Missing("stream", () -> publisher.publishAsync(null, event)),
                new Missing("stream", () -> publisher.publishAll(null, List.of(event))),
                new Missing("stream", () -> publisher.publishAllAsync(null, List.of())),
                new Missing("event", () -> publisher.publish(STREAM, null)),
                new Missing("event", () -> publisher.publishAsync(STREAM, null)),
                new Missing("events", () -> publisher.publishAll(STREAM, null)),
                new Missing("events", () -> publisher.publishAllAsync(STREAM, null)),
                new Missing("events[1]", () -> publisher.publishAll(STREAM, Arrays.asList(event, null))),
                new Missing("event.value", () -> publisher.publish(STREAM, Event.of(null))),
                new Missing("event.key", () -> publisher.publish(STREAM, Event.ofText(null, "x"))),
                new Missing("event.headers", () -> publisher.publish(STREAM, new Event("k", new byte[0], null))),
                new Missing("event.headers", () -> publisher.publish(STREAM, event.withHeader(null, "x"))),
                new Missing("event.headers[type]", () -> publisher.publish(STREAM, event.withHeader("type", null))),
                new Missing("stream", () -> outbox.publish(connection, null, event)),
                new Missing("stream", () -> outbox.publishAll(connection, null, List.of())),
                new Missing("event", () -> outbox.publish(connection, STREAM, null)),
                new Missing("events", () -> outbox.publishAll(connection, STREAM, null)),
                new Missing("events[0]", () -> outbox.publishAll(connection, STREAM, Arrays.asList((Event) null))),
                new Missing("transaction", () -> outbox.publish((Connection) null, STREAM, event)),
                new Missing("transaction", () -> outbox.publishAll((Connection) null, STREAM, List.of(event))),
                new Missing("transaction", () -> outbox.publish((DSLContext) null, STREAM, event)),
                new Missing("transaction", () -> outbox.publishAll((DSLContext) null, STREAM, List.of(event))),
                new Missing("transaction", () -> outbox.publish((Configuration) null, STREAM, event)),
                new Missing("transaction", () -> outbox.publishAll((Configuration) null, STREAM, List.of(event))),
                new Missing("name", () -> outbox.backlog(null)),
                new Missing("stream", () -> eventSql.createStream(null)),
                new Missing("stream", () -> eventSql.previewClear(null)),
                new Missing("stream", () -> eventSql.clear(null, "x")),
                new Missing("confirmation", () -> eventSql.clear(STREAM, null)),
                new Missing("consumer", () -> eventSql.subscribe(null, handler)),
                new Missing("handler", () -> eventSql.subscribe(spec, null)),
                new Missing("handler", () -> eventSql.subscribeBatch(spec, null)),
                new Missing("handler", () -> eventSql.subscribeTransactional(spec, (TransactionalEventHandler) null)),
                new Missing("boundary", () -> eventSql.subscribeTransactional(spec, null, transactional)),
                new Missing("handler", () -> eventSql.subscribeTransactional(spec, boundary, null)),
                new Missing(
                        "handler",
                        () -> eventSql.subscribeTransactionalBatch(spec, (TransactionalEventBatchHandler) null)),
                new Missing("boundary", () -> eventSql.subscribeTransactionalBatch(spec, null, transactionalBatch)),
                new Missing("stream", () -> eventSql.consumer(null, "c")),
                new Missing("consumer.name", () -> eventSql.consumer(STREAM, null)),
                new Missing("stream", () -> eventSql.positions(null, "c")),
                new Missing("consumer.name", () -> eventSql.positions(STREAM, null)),
                new Missing("position", () -> eventSql.read(null, 1)),
                new Missing("position.stream", () -> eventSql.read(new EventPosition(null, 0, 0, 0), 1)),
                new Missing("position", () -> control().seek((StartPosition) null)),
                new Missing("position", () -> control().seek((EventPosition) null)),
                new Missing("position.stream", () -> control().seek(new EventPosition(null, 0, 0, 0))),
                new Missing("positions", () -> control().redrive(null)),
                new Missing("positions", () -> control().drop(null)),
                new Missing("position", () -> control().drop(Arrays.asList((EventPosition) null))),
                new Missing("startPosition.time", () -> StartPosition.at(null)),
                new Missing("timeout", () -> eventSql.close(null)),
                new Missing("dataSource", () -> EventSql.builder((DataSource) null)),
                new Missing("dataSources", () -> EventSql.builder((List<DataSource>) null)),
                new Missing("dataSources[0]", () -> EventSql.builder(Arrays.asList((DataSource) null))),
                new Missing("shards", () -> EventSql.builder((Map<String, DataSource>) null)),
                new Missing("shards[a]", () -> EventSql.builder(Collections.singletonMap("a", null))),
                new Missing("shards", () -> EventSql.builder(Collections.singletonMap(null, new PGSimpleDataSource()))),
                new Missing("settings", () -> builder().settings(null)),
                new Missing("listener", () -> builder().listener(null)),
                new Missing("publishListener", () -> builder().publishListener(null)),
                new Missing("preferredShard", () -> builder().preferredShard(null)),
                new Missing("outboxes", () -> builder().outbox((DataSource[]) null)),
                new Missing("outboxes[0]", () -> builder().outbox((DataSource) null)));
    }

    private static EventSqlBuilder builder() {
        return EventSql.builder(cluster.dataSources());
    }

    private static ConsumerControl control() {
        return eventSql.consumer(STREAM, "c");
    }

    /** Of no database: what is rejected does not use it. */
    private static Connection unusableConnection() {
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    throw new AssertionError(method + " was called");
                });
    }

    @Test
    void anyMethod_missingArgument_isRejectedByName() {
        assertThat(missingArguments()).allSatisfy(missing -> assertRejected(missing.field(), "", missing.call()));
    }

    @Test
    void publish_invalidAmongValidEvents_validOnesAreStored() throws Exception {
        mayStore = true;
        List<CompletableFuture<EventPosition>> good = new ArrayList<>();
        List<InvalidEvent> invalid = invalidEvents();
        for (int i = 0; i < 250; i++) {
            good.add(publisher.publishAsync(STREAM, Event.ofText("key-" + i, "good " + i)));
            InvalidEvent one = invalid.get(i % invalid.size());
            assertRejected(one.field(), one.limit(), () -> publisher.publishAsync(STREAM, one.event()));
        }
        for (int i = 0; i < 250; i++) {
            EventPosition position = good.get(i).get(120, TimeUnit.SECONDS);
            assertThat(eventSql.read(position, 1).getFirst().text()).isEqualTo("good " + i);
        }
        long before = rowsBefore.getOrDefault("eventsql.events_orders", 0L);
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.events_orders")).isEqualTo(before + 250);
    }

    // Reading

    @Test
    void read_invalidPosition_isRejectedNamingTheField() {
        assertRejected("position.shard", "between 0 and 1, but is -1", () -> read(-1, 0, 0, 1));
        assertRejected("position.shard", "between 0 and 1, but is 2", () -> read(2, 0, 0, 1));
        assertRejected("position.partition", "between 0 and 2, but is -1", () -> read(0, -1, 0, 1));
        assertRejected("position.partition", "between 0 and 2, but is 3", () -> read(0, PARTITIONS, 0, 1));
        assertRejected("position.offset", "between 0 and", () -> read(0, 0, -1, 1));
        assertRejected("position.offset", "but is " + Long.MIN_VALUE, () -> read(0, 0, Long.MIN_VALUE, 1));
        assertRejected("maxEvents", "between 1 and 100000, but is 0", () -> read(0, 0, 0, 0));
        assertRejected("maxEvents", "between 1 and 100000, but is 100001", () -> read(0, 0, 0, 100_001));
        assertRejected("maxEvents", "but is -5", () -> read(0, 0, 0, -5));
    }

    private static void read(int shard, int partition, long offset, int maxEvents) {
        eventSql.read(new EventPosition(STREAM, shard, partition, offset), maxEvents);
    }

    // Streams

    @Test
    void createStream_existsWithOtherValues_changesNothing() {
        StreamSpec existing = StreamSpec.of(STREAM).withPartitions(PARTITIONS);
        assertRejected(
                "stream.partitions",
                "is 3 and cannot become 4",
                () -> eventSql.createStream(existing.withPartitions(4)));
        eventSql.createStream(existing.withSegmentSize(100).asJson());
        assertThat(eventSql.streams()).contains(existing);
    }
}
