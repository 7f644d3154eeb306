package io.eventsql;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What holds for any number of shards, with nothing going wrong but handlers. The numbers of events are small; the seed
 * of what is random is printed on failure and set by {@code -Deventsql.test.seed}.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(120)
abstract class EventSqlContract {
    private static final int PARTITIONS = 4;
    private static final Duration SHORT_RETRY = Duration.ofMillis(1);
    private static final AtomicInteger STREAMS = new AtomicInteger();

    private final int shards;
    private final long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
    private TestCluster cluster;
    private EventSql eventSql;
    private EventPublisher publisher;

    EventSqlContract(int shards) {
        this.shards = shards;
    }

    @BeforeAll
    void open() {
        cluster = TestCluster.ofShards(shards);
        eventSql = cluster.open();
        publisher = eventSql.publisher();
    }

    @AfterAll
    void close() {
        cluster.close();
    }

    /** A stream for one test. */
    private String newStream() {
        return newStream(StreamSpec.of("s" + STREAMS.incrementAndGet()).withPartitions(PARTITIONS));
    }

    private String newStream(StreamSpec spec) {
        eventSql.createStream(spec);
        return spec.name();
    }

    private static String newName() {
        return "s" + STREAMS.incrementAndGet();
    }

    private List<StoredEvent> readAll(String stream) {
        List<StoredEvent> all = new ArrayList<>();
        StreamSpec spec = eventSql.streams().stream()
                .filter(s -> s.name().equals(stream))
                .findFirst()
                .orElseThrow();
        for (int shard = 0; shard < shards; shard++) {
            for (int partition = 0; partition < spec.partitions(); partition++) {
                for (long next = 0; ; ) {
                    List<StoredEvent> page = eventSql.read(new EventPosition(stream, shard, partition, next), 1_000);
                    if (page.isEmpty()) {
                        break;
                    }
                    for (StoredEvent event : page) {
                        assertThat(event.position())
                                .as("gapless")
                                .isEqualTo(new EventPosition(stream, shard, partition, next++));
                    }
                    all.addAll(page);
                }
            }
        }
        return all;
    }

    private StoredEvent readOne(EventPosition position) {
        return eventSql.read(position, 1).getFirst();
    }

    private DataSource database(int shard) {
        return eventSql.shards().get(shard).dataSource();
    }

    private List<EventPosition> publishTexts(String stream, int from, int to) {
        return publisher.publishAll(
                stream,
                IntStream.range(from, to)
                        .mapToObj(i -> Event.ofText("key-" + i % 20, Integer.toString(i)))
                        .toList());
    }

    private static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toList();
    }

    private ConsumerSpec consumer(String stream, String name) {
        return ConsumerSpec.of(stream, name).withRetryDelay(SHORT_RETRY, Duration.ofMillis(5));
    }

    private long committed(String stream, String consumer) {
        return eventSql.positions(stream, consumer).stream()
                .mapToLong(ConsumerPosition::nextOffset)
                .sum();
    }

    // Streams

    @Test
    void createStream_existsWithTheSameValues_doesNothing() {
        StreamSpec spec =
                StreamSpec.of(newName()).withPartitions(2).withSegmentSize(200).asJson();
        eventSql.createStream(spec);
        publisher.publish(spec.name(), Event.ofText("1"));
        eventSql.createStream(spec);
        cluster.open().createStream(spec);
        assertThat(readAll(spec.name())).hasSize(1);
        assertThat(eventSql.streams()).contains(spec);
    }

    @Test
    void createStream_existsWithOtherValues_isRefusedNamingTheField() {
        StreamSpec spec = StreamSpec.of(newName()).withPartitions(2).withSegmentSize(200);
        eventSql.createStream(spec);
        Map<String, StreamSpec> others = Map.of(
                "stream.partitions", spec.withPartitions(3),
                "stream.segmentSize", spec.withSegmentSize(300),
                "stream.json", spec.asJson());
        for (EventSql instance : List.of(eventSql, cluster.open())) {
            others.forEach((field, other) -> assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> instance.createStream(other))
                    .withMessageContaining(spec.name())
                    .satisfies(e -> assertThat(e.field()).isEqualTo(field)));
            assertThat(instance.streams()).contains(spec);
        }
    }

    @Test
    void createStream_byManyAtOnce_isCreatedOnce() throws Exception {
        List<EventSql> instances = List.of(eventSql, cluster.open(), cluster.open());
        StreamSpec spec = StreamSpec.of(newName()).withPartitions(3);
        CountDownLatch start = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<?>> done = new ArrayList<>();
            for (EventSql instance : instances) {
                done.add(executor.submit(() -> {
                    start.await();
                    instance.createStream(spec);
                    return instance.publisher().publish(spec.name(), Event.ofText("x"));
                }));
            }
            start.countDown();
            for (Future<?> one : done) {
                one.get(30, TimeUnit.SECONDS);
            }
        }
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.stream WHERE name = '" + spec.name() + "'"))
                .isEqualTo(shards);
        assertThat(readAll(spec.name())).hasSize(3);
    }

    @Test
    void streams_ofAnotherInstance_areListedByName() {
        String b = newStream(StreamSpec.of("zz_" + newName()));
        String a = newStream(StreamSpec.of("aa_" + newName()));
        List<String> names =
                cluster.open().streams().stream().map(StreamSpec::name).toList();
        assertThat(names).contains(a, b).isSorted();
    }

    // Publishing

    @Test
    void publish_event_canBeReadBack() {
        String stream = newStream();
        Event event = Event.ofText("customer-1", "hello")
                .withHeader("type", "greeting")
                .withHeader("v", "2");
        Instant before = Instant.now().minusSeconds(60);
        EventPosition position = publisher.publish(stream, event);
        StoredEvent stored = readOne(position);
        assertThat(stored.position()).isEqualTo(position);
        assertThat(stored.key()).isEqualTo("customer-1");
        assertThat(stored.value()).isEqualTo("hello".getBytes(UTF_8));
        assertThat(stored.headers()).isEqualTo(event.headers());
        assertThat(stored.publishedAt()).isBetween(before, Instant.now().plusSeconds(60));
    }

    @Test
    void publish_noKeyNoHeaders_areReadBackAsNone() {
        StoredEvent stored = readOne(publisher.publish(newStream(), Event.ofText("x")));
        assertThat(stored.key()).isNull();
        assertThat(stored.headers()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                " ",
                "NULL",
                "{}",
                "\"'\\/;--",
                "{\"a\":[1,\"}\"]}",
                "tab\tnewline\ncarriage\r",
                "\u0001\u001f\u007f\u0085",
                "\u00e4\u00df\u0416\u4e2d\u6587\u0627\u0644",
                "\ud83d\ude00\ud83c\udff3\ufe0f\u200d\ud83c\udf08",
                "e\u0301 is not \u00e9",
                "\u200b\u202e\ufeff\ufffe\uffff",
            })
    void publish_oddTexts_areReadBackEqual(String text) {
        String stream = newStreamOnce("odd_texts");
        Event event = new Event(text, text.getBytes(UTF_8), Map.of(text, text, "plain", "x"));
        StoredEvent stored = readOne(publisher.publish(stream, event));
        assertThat(stored.key()).isEqualTo(text);
        assertThat(stored.text()).isEqualTo(text);
        assertThat(stored.headers()).isEqualTo(event.headers());
    }

    private String newStreamOnce(String name) {
        return newStream(StreamSpec.of(name).withPartitions(PARTITIONS));
    }

    @Test
    void publish_anyBytes_areReadBackEqual() {
        String stream = newStream();
        byte[] every = new byte[256];
        for (int i = 0; i < every.length; i++) {
            every[i] = (byte) i;
        }
        byte[] large = new byte[1 << 20];
        new Random(seed).nextBytes(large);
        for (byte[] value : List.of(new byte[0], new byte[] {0}, every, large)) {
            assertThat(readOne(publisher.publish(stream, Event.of("k", value))).value())
                    .as("seed %d", seed)
                    .isEqualTo(value);
        }
    }

    @Test
    void publish_headers_answerJsonOperators() throws SQLException {
        String stream = newStream();
        String odd = "a\"b\\c\n\t\u0001 \u00e4 \ud83d\ude00";
        EventPosition position = publisher.publish(
                stream, Event.ofText("x").withHeader("type", "order").withHeader(odd, odd));
        String where = " FROM eventsql.events_" + stream + " WHERE partition = " + position.partition()
                + " AND event_offset = " + position.offset();
        DataSource database = database(position.shard());
        assertThat(Sql.query(database, "SELECT headers ->> 'type'" + where)).containsExactly("order");
        assertThat(Sql.query(database, "SELECT headers ->> ?" + where, odd)).containsExactly(odd);
        assertThat(Sql.query(database, "SELECT headers::jsonb ->> ?" + where, odd))
                .containsExactly(odd);
    }

    @Test
    void publish_unknownStream_isRefusedUntilItIsCreated() {
        String name = newName();
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> publisher.publish(name, Event.ofText("x")))
                .withMessageContaining(name);
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> publisher.publishAllAsync(name, List.of(Event.ofText("x"))));
        cluster.open().createStream(StreamSpec.of(name));
        assertThat(publisher.publish(name, Event.ofText("x")).offset()).isZero();
    }

    @Test
    void publishAsync_withoutWaiting_storesAKeyInCallOrder() {
        String stream = newStream();
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 2_000)
                .mapToObj(i -> publisher.publishAsync(stream, Event.ofText("one key", Integer.toString(i))))
                .toList();
        List<EventPosition> positions =
                futures.stream().map(CompletableFuture::join).toList();
        EventPosition first = positions.getFirst();
        assertThat(positions)
                .containsExactlyElementsOf(IntStream.range(0, 2_000)
                        .mapToObj(i -> new EventPosition(stream, first.shard(), first.partition(), i))
                        .toList());
        assertThat(readAll(stream).stream().map(StoredEvent::text)).containsExactlyElementsOf(texts(0, 2_000));
    }

    @Test
    void publishAll_manyKeys_returnsPositionsInCallOrder() {
        String stream = newStream();
        List<Event> events = IntStream.range(0, 500)
                .mapToObj(i -> i % 7 == 0 ? Event.ofText("" + i) : Event.ofText("key-" + i % 50, "" + i))
                .toList();
        List<EventPosition> positions = publisher.publishAll(stream, events);
        assertThat(positions).hasSize(500).doesNotHaveDuplicates();
        Map<EventPosition, String> stored = new HashMap<>();
        readAll(stream).forEach(event -> stored.put(event.position(), event.key() + "=" + event.text()));
        assertThat(stored).hasSize(500);
        for (int i = 0; i < events.size(); i++) {
            assertThat(stored.get(positions.get(i)))
                    .isEqualTo(events.get(i).key() + "=" + events.get(i).text());
        }
        assertThat(positions.stream().mapToInt(EventPosition::shard).distinct()).hasSize(shards);
        assertThat(IntStream.range(0, 500)
                        .filter(i -> i % 7 == 0)
                        .mapToObj(i -> positions.get(i).shard() + "/"
                                + positions.get(i).partition())
                        .distinct())
                .as("events without a key stay together")
                .hasSize(1);
    }

    @Test
    void publishAll_nothing_returnsNothing() {
        assertThat(publisher.publishAll(newStream(), List.of())).isEmpty();
    }

    @Test
    void publishAll_oneEventRefusedByTheDatabase_itsShardStoresNothingAndOthersAreUnharmed() throws Exception {
        String stream = newStream();
        cluster.execute("ALTER TABLE eventsql.events_" + stream + " ADD CONSTRAINT no_poison CHECK (key <> 'poison')");
        List<CompletableFuture<EventPosition>> meanwhile = new ArrayList<>();
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            events.add(Event.ofText("key-" + i, "poisoned call"));
        }
        events.add(30, Event.ofText("poison", "poisoned call"));
        for (int i = 0; i < 50; i++) {
            meanwhile.add(publisher.publishAsync(stream, Event.ofText("other-" + i, "fine")));
        }
        CompletableFuture<List<EventPosition>> poisoned = publisher.publishAllAsync(stream, events);
        for (int i = 50; i < 100; i++) {
            meanwhile.add(publisher.publishAsync(stream, Event.ofText("other-" + i, "fine")));
        }

        for (CompletableFuture<EventPosition> fine : meanwhile) {
            assertThat(readOne(fine.get(30, TimeUnit.SECONDS)).text()).isEqualTo("fine");
        }
        assertThatThrownBy(() -> poisoned.get(30, TimeUnit.SECONDS)).cause().satisfies(failure -> {
            if (shards == 1) {
                assertThat(failure).isInstanceOf(EventNotStoredException.class).hasMessageContaining("no_poison");
                return;
            }
            List<PartialPublishException.Outcome> outcomes = ((PartialPublishException) failure).outcomes();
            assertThat(outcomes).hasSize(61);
            assertThat(outcomes.get(30).failure()).isInstanceOf(EventNotStoredException.class);
            List<EventPosition> stored = outcomes.stream()
                    .filter(PartialPublishException.Outcome::isStored)
                    .map(PartialPublishException.Outcome::position)
                    .toList();
            assertThat(stored.stream().map(EventPosition::shard).distinct()).hasSize(shards - 1);
            assertThat(stored).allMatch(p -> readOne(p).text().equals("poisoned call"));
        });
        long storedOfPoisoned = readAll(stream).stream()
                .filter(e -> e.text().equals("poisoned call"))
                .count();
        assertThat(storedOfPoisoned).isLessThan(61).matches(n -> shards > 1 || n == 0);
        assertThat(readAll(stream)).hasSize(100 + (int) storedOfPoisoned);
    }

    /**
     * Goal: events of one key are stored in the order in which they were published, once each, in one place, and what
     * was acknowledged is what is stored, with many callers of every kind at once. Method: each thread has keys of its
     * own and counts up in each; afterwards everything is read.
     */
    @Test
    void publish_concurrentCallersOfEveryKind_keepTheOrderOfEachKey() throws Exception {
        String stream = newStream();
        int threads = 8;
        int callsEach = 150;
        Map<EventPosition, String> acknowledged = new HashMap<>();
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<Map<EventPosition, String>>> results = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                Random random = new Random(seed + thread);
                String prefix = "t" + thread + "-";
                results.add(executor.submit(() -> publishRandomly(stream, prefix, callsEach, random)));
            }
            for (Future<Map<EventPosition, String>> result : results) {
                acknowledged.putAll(result.get(60, TimeUnit.SECONDS));
            }
        }
        List<StoredEvent> stored = readAll(stream);
        Map<EventPosition, String> found = new HashMap<>();
        stored.forEach(event -> found.put(event.position(), event.text()));
        assertThat(found).as("seed %d", seed).isEqualTo(acknowledged);

        Map<String, Integer> lastOf = new HashMap<>();
        Map<String, String> placeOf = new HashMap<>();
        Map<String, Instant> timeOf = new HashMap<>();
        for (StoredEvent event : stored) {
            String place = event.shard() + "/" + event.partition();
            Instant before = timeOf.put(place, event.publishedAt());
            assertThat(before == null || !event.publishedAt().isBefore(before))
                    .as("published_at never runs backwards")
                    .isTrue();
            if (event.key() != null) {
                int number =
                        Integer.parseInt(event.text().substring(event.text().indexOf('=') + 1));
                Integer last = lastOf.put(event.key(), number);
                assertThat(number).as("of key %s, seed %d", event.key(), seed).isEqualTo(last == null ? 0 : last + 1);
                assertThat(placeOf.computeIfAbsent(event.key(), k -> place)).isEqualTo(place);
            }
        }
    }

    private Map<EventPosition, String> publishRandomly(String stream, String prefix, int calls, Random random) {
        Map<String, Integer> next = new HashMap<>();
        Map<CompletableFuture<EventPosition>, String> single = new HashMap<>();
        Map<CompletableFuture<List<EventPosition>>, List<String>> many = new HashMap<>();
        for (int call = 0; call < calls; call++) {
            List<Event> events = new ArrayList<>();
            int size = random.nextInt(3) == 0 ? 1 + random.nextInt(12) : 1;
            for (int i = 0; i < size; i++) {
                String key = random.nextInt(5) == 0 ? null : prefix + random.nextInt(6);
                int number = next.merge(key == null ? prefix + "none" : key, 1, Integer::sum) - 1;
                String text = (key == null ? prefix + "none" : key) + "=" + number;
                events.add(key == null ? Event.ofText(text) : Event.ofText(key, text));
            }
            List<String> texts = events.stream().map(Event::text).toList();
            switch (random.nextInt(3)) {
                case 0 -> many.put(CompletableFuture.completedFuture(publisher.publishAll(stream, events)), texts);
                case 1 -> many.put(publisher.publishAllAsync(stream, events), texts);
                default -> events.forEach(event -> single.put(publisher.publishAsync(stream, event), event.text()));
            }
        }
        Map<EventPosition, String> acknowledged = new HashMap<>();
        single.forEach((future, text) -> acknowledged.put(future.join(), text));
        many.forEach((future, texts) -> {
            List<EventPosition> positions = future.join();
            for (int i = 0; i < texts.size(); i++) {
                acknowledged.put(positions.get(i), texts.get(i));
            }
        });
        return acknowledged;
    }

    @Test
    void publish_streamOfOnePartition_manyAtOnceAllAreStored() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 5_000)
                .mapToObj(i -> publisher.publishAsync(stream, Event.ofText("" + i)))
                .toList();
        futures.forEach(future ->
                assertThat(future.orTimeout(30, TimeUnit.SECONDS).join()).isNotNull());
        assertThat(readAll(stream)).hasSize(5_000);
    }

    // Reading

    @Test
    void read_acrossSegments_returnsAllInPagesOfAnySize() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream =
                newStream(StreamSpec.of(newName()).withPartitions(2).withSegmentSize(StreamSpec.MIN_SEGMENT_SIZE));
        EventPosition first = small.publisher().publish(stream, Event.ofText("k", "0"));
        for (int from = 1; from < 350; from += 50) {
            List<Event> events = IntStream.range(from, Math.min(from + 50, 350))
                    .mapToObj(i -> Event.ofText("k", "" + i))
                    .toList();
            small.publisher().publishAll(stream, events);
        }
        for (int pageEvents : new int[] {1, 7, 99, 100, 101, 200, 1_000}) {
            List<String> read = new ArrayList<>();
            List<StoredEvent> page;
            do {
                page = small.read(new EventPosition(stream, first.shard(), first.partition(), read.size()), pageEvents);
                assertThat(page).hasSize(Math.min(pageEvents, 350 - read.size()));
                page.forEach(event -> read.add(event.text()));
            } while (!page.isEmpty());
            assertThat(read).as("pages of %d", pageEvents).containsExactlyElementsOf(texts(0, 350));
        }
    }

    @Test
    void read_atTheHead_isEmptyBeyondOutOfRange() {
        String stream = newStream();
        EventPosition position = publisher.publish(stream, Event.ofText("x"));
        EventPosition head = new EventPosition(stream, position.shard(), position.partition(), 1);
        assertThat(eventSql.read(head, 10)).isEmpty();
        for (long beyond : new long[] {2, 100, 1_000_000, 5_000_000_000L, Long.MAX_VALUE}) {
            EventPosition asked = new EventPosition(stream, position.shard(), position.partition(), beyond);
            assertThatExceptionOfType(OffsetOutOfRangeException.class)
                    .isThrownBy(() -> eventSql.read(asked, 10))
                    .satisfies(e -> {
                        assertThat(e.asked()).isEqualTo(asked);
                        assertThat(e.head()).isEqualTo(1);
                        assertThat(e.logStart()).isZero();
                    });
        }
        publisher.publishAll(stream, List.of());
        assertThat(eventSql.read(new EventPosition(stream, 0, PARTITIONS - 1, 0), 10))
                .hasSizeLessThanOrEqualTo(1);
    }

    @Test
    void read_headAtASegmentsEnd_isEmpty() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).withSegmentSize(100));
        List<Event> fifty =
                IntStream.range(0, 50).mapToObj(i -> Event.ofText("k", "" + i)).toList();
        small.publisher().publishAll(stream, fifty);
        EventPosition last = small.publisher().publishAll(stream, fifty).getLast();
        assertThat(last.offset()).isEqualTo(99);
        assertThat(small.read(new EventPosition(stream, last.shard(), 0, 100), 10))
                .isEmpty();
        assertThat(small.read(new EventPosition(stream, last.shard(), 0, 99), 10))
                .hasSize(1);
    }

    @Test
    void read_manyBytes_returnsAPageOfBoundedSize() {
        String stream = newStream();
        List<EventPosition> positions = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            positions.add(publisher.publish(stream, Event.of("k", new byte[1 << 20])));
        }
        List<StoredEvent> page = eventSql.read(positions.getFirst(), 100);
        long limit = ConsumerSpec.DEFAULT_PAGE_BYTES / (1 << 20);
        assertThat(page).hasSize((int) limit);
        assertThat(eventSql.read(positions.get(page.size()), 100)).hasSize(7 - page.size());
    }

    // JSON

    @Test
    void jsonView_values_arePresentedAsJsonb() throws SQLException {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).asJson());
        List<String> values = List.of(
                "{\"id\": 7, \"name\": \"K\u00e4se\"}",
                "not json",
                "",
                "{\"nul\": \"\\u0000\"}",
                "{\"huge\": 1e999999}",
                "[".repeat(100_000),
                "[".repeat(20_000) + "]".repeat(20_000),
                "{\"id\": 8}");
        List<EventPosition> positions = new ArrayList<>();
        for (String value : values) {
            positions.add(publisher.publish(stream, Event.ofText("k", value)));
        }
        positions.add(publisher.publish(stream, Event.of("k", new byte[] {(byte) 0xff, (byte) 0xfe})));
        DataSource database = database(positions.getFirst().shard());
        String view = " FROM eventsql.events_" + stream + "__json ";
        assertThat(Sql.query(database, "SELECT value ->> 'id'" + view + "ORDER BY event_offset"))
                .containsExactly("7", null, null, null, null, null, null, "8", null);
        assertThat(Sql.query(database, "SELECT event_offset" + view + "WHERE value @> '{\"name\": \"K\u00e4se\"}'"))
                .containsExactly("0");
        assertThat(Sql.query(database, "SELECT key" + view + "WHERE value IS NULL"))
                .hasSizeGreaterThan(4)
                .containsOnly("k");
    }

    @Test
    void jsonView_streamNotDeclaredAsJson_isNotThere() throws SQLException {
        String stream = newStream();
        assertThat(cluster.sum("SELECT count(*) FROM pg_views WHERE viewname = 'events_" + stream + "__json'"))
                .isZero();
    }

    // Consuming

    @Test
    void subscribe_eventsBeforeAndMeanwhile_eachOnceAndInOrder() {
        String stream = newStream();
        publishTexts(stream, 0, 700);
        Handled handled = new Handled();
        try (Subscription subscription = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            publishTexts(stream, 700, 1_500);
            handled.awaitSize(1_500).assertOnceAndInOrder();
            assertThat(subscription.isRunning()).isTrue();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 1_500));
        assertOrderOfKeys(handled);
    }

    private static void assertOrderOfKeys(Handled handled) {
        Map<String, Integer> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            Integer before = last.put(event.key(), Integer.parseInt(event.text()));
            assertThat(before == null || before < Integer.parseInt(event.text()))
                    .as("order of %s", event.key())
                    .isTrue();
        }
    }

    @Test
    void subscribe_eventHandled_isTheEventPublished() {
        String stream = newStream();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            Event event = Event.ofText("k\u00e4se", "v\u00e4lue").withHeader("n\u00e4me", "\ud83d\ude00");
            EventPosition position = publisher.publish(stream, event);
            StoredEvent stored = handled.awaitSize(1).events().getFirst();
            assertThat(stored.position()).isEqualTo(position);
            assertThat(stored.stream()).isEqualTo(stream);
            assertThat(new Event(stored.key(), stored.value(), stored.headers()))
                    .isEqualTo(event);
        }
    }

    @Test
    void subscribe_manyConsumers_eachGetsEverything() {
        String stream = newStream();
        List<Handled> all = List.of(new Handled(), new Handled(), new Handled());
        List<Subscription> subscriptions = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) {
            subscriptions.add(eventSql.subscribe(consumer(stream, "c" + i), all.get(i)::add));
        }
        publishTexts(stream, 0, 300);
        all.forEach(handled -> handled.awaitSize(300).assertOnceAndInOrder());
        subscriptions.forEach(Subscription::close);
    }

    @Test
    void subscribe_anotherConsumerFarBehind_doesNotStarve() {
        String stream = newStream();
        for (int i = 0; i < 4; i++) {
            publishTexts(stream, i * 5_000, (i + 1) * 5_000);
        }
        // Far behind for the whole test: it gets every page ten times.
        AtomicInteger handledBehind = new AtomicInteger();
        ConsumerSpec behind = consumer(stream, "behind").withPageEvents(10);
        ConsumerSpec latest = consumer(stream, "latest").withStartPosition(StartPosition.LATEST);
        Handled handled = new Handled();
        int missing;
        try (Subscription slow = eventSql.subscribe(behind, event -> handledBehind.incrementAndGet());
                Subscription fast = eventSql.subscribe(latest, handled::add)) {
            publishTexts(stream, 20_000, 20_100);
            handled.awaitSize(100);
            missing = 20_100 - handledBehind.get();
        }
        assertThat(missing).as("events the other one still had before it").isPositive();
    }

    @Test
    void subscribeBatch_pages_areBoundedInEventsAndWithinOnePartition() {
        String stream = newStream();
        publishTexts(stream, 0, 500);
        Handled handled = new Handled();
        List<List<StoredEvent>> pages = new ArrayList<>();
        ConsumerSpec spec = consumer(stream, "c").withPageEvents(7).withConcurrency(1);
        try (Subscription ignored = eventSql.subscribeBatch(spec, page -> {
            pages.add(List.copyOf(page));
            handled.addAll(page);
        })) {
            handled.awaitSize(500).assertOnceAndInOrder();
        }
        assertThat(pages).allSatisfy(page -> {
            assertThat(page).hasSizeBetween(1, 7);
            assertThat(page.stream().map(e -> e.shard() + "/" + e.partition()).distinct())
                    .hasSize(1);
        });
        assertThat(pages).anyMatch(page -> page.size() == 7);
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 1_500, 3_000})
    void subscribeBatch_pages_areBoundedInBytes(int valueBytes) {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        int pageBytes = 10_000;
        int total = 5 * pageBytes / valueBytes;
        publisher.publishAll(
                stream,
                Stream.generate(() -> Event.of("k", new byte[valueBytes]))
                        .limit(total)
                        .toList());
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(pageBytes), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(total).assertOnceAndInOrder();
        }
        // A page ends with the event that brings it to the limit.
        int most = Math.ceilDiv(pageBytes, valueBytes);
        assertThat(sizes).allMatch(size -> size <= most).contains(most);
    }

    @Test
    void subscribeBatch_eventLargerThanAPage_isHandledAlone() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        for (int i = 0; i < 3; i++) {
            publisher.publish(stream, Event.of("k", new byte[5_000]));
        }
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(1_024), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(3).assertOnceAndInOrder();
        }
        assertThat(sizes).containsOnly(1);
    }

    @Test
    void subscribe_acrossSegments_goesOn() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(2).withSegmentSize(100));
        Handled handled = new Handled();
        try (Subscription ignored = small.subscribe(consumer(stream, "c").withPageEvents(30), handled::add)) {
            for (int i = 0; i < 20; i++) {
                List<Event> events = IntStream.range(i * 50, i * 50 + 50)
                        .mapToObj(n -> Event.ofText("key-" + n % 20, "" + n))
                        .toList();
                small.publisher().publishAll(stream, events);
            }
            handled.awaitSize(1_000).assertOnceAndInOrder();
        }
        assertOrderOfKeys(handled);
    }

    @Test
    void subscribe_concurrencyOne_handlesOneAtATime() {
        String stream = newStream();
        publishTexts(stream, 0, 200);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c").withConcurrency(1), event -> {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            Thread.yield();
            inside.decrementAndGet();
            handled.add(event);
        })) {
            handled.awaitSize(200);
        }
        assertThat(most).hasValue(1);
    }

    @Test
    void subscribe_fewerPlacesThanPartitions_theseTakeTurns() {
        String stream = newStream();
        for (int i = 0; i < 4; i++) {
            publishTexts(stream, i * 1_000, (i + 1) * 1_000);
        }
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withConcurrency(1).withPageEvents(10);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            handled.awaitSize(4_000).assertOnceAndInOrder();
        }
        // By shard, because each is joined at its own time.
        for (int shard = 0; shard < shards; shard++) {
            int number = shard;
            List<Integer> partitions = handled.positions().stream()
                    .filter(position -> position.shard() == number)
                    .map(EventPosition::partition)
                    .toList();
            assertThat(new HashSet<>(partitions.subList(0, partitions.size() / 2)))
                    .as("partitions handled in the first half of shard %d", shard)
                    .isEqualTo(new HashSet<>(partitions));
        }
    }

    @Test
    void subscribe_blockedPartition_othersGoOn() {
        String stream = newStream();
        EventPosition blocked = publisher.publish(stream, Event.ofText("blocked", "x"));
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            if (event.position().equals(blocked)) {
                release.await();
            }
            handled.add(event);
        })) {
            List<EventPosition> others = publishTexts(stream, 0, 200).stream()
                    .filter(p -> p.shard() != blocked.shard() || p.partition() != blocked.partition())
                    .toList();
            handled.awaitSize(others.size());
            assertThat(handled.positions()).containsExactlyInAnyOrderElementsOf(others);
            release.countDown();
            handled.awaitSize(201).assertOnceAndInOrder();
        }
    }

    // Handlers that fail

    @Test
    void subscribe_handlerThrows_sameEventComesAgainAndOrderIsKept() {
        String stream = newStream();
        publishTexts(stream, 0, 300);
        Map<EventPosition, Integer> failures = new HashMap<>();
        Handled tried = new Handled();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            tried.add(event);
            boolean fail;
            synchronized (failures) {
                fail = Integer.parseInt(event.text()) % 25 == 0
                        && failures.merge(event.position(), 1, Integer::sum) <= 2;
            }
            if (fail) {
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            handled.awaitSize(300).assertOnceAndInOrder();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 300));
        assertThat(tried.size()).isEqualTo(300 + 2 * 12);
    }

    @Test
    void subscribeBatch_handlerThrows_sameEventsComeAgain() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        publishTexts(stream, 0, 50);
        int ofOne = (int) readAll(stream).stream().filter(e -> e.shard() == 0).count();
        List<List<String>> tried = new ArrayList<>();
        Handled handled = new Handled();
        AtomicInteger calls = new AtomicInteger();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withConcurrency(1), page -> {
                    if (page.getFirst().shard() == 0) {
                        tried.add(page.stream().map(StoredEvent::text).toList());
                        if (calls.incrementAndGet() <= 3) {
                            throw new IllegalStateException("on purpose");
                        }
                    }
                    handled.addAll(page);
                })) {
            handled.awaitSize(50).assertOnceAndInOrder();
        }
        assertThat(tried).hasSize(4).containsOnly(tried.getFirst());
        assertThat(tried.getFirst()).hasSize(ofOne);
    }

    private interface Failing {
        void fail() throws Exception;
    }

    /** What must not end a member, beside ordinary exceptions. */
    private enum Failure implements Failing {
        ERROR {
            @Override
            public void fail() {
                throw new AssertionError("on purpose");
            }
        },
        OUT_OF_MEMORY {
            @Override
            public void fail() {
                throw new OutOfMemoryError("on purpose");
            }
        },
        STACK_OVERFLOW {
            @Override
            public void fail() {
                throw new StackOverflowError("on purpose");
            }
        },
        INTERRUPTED_EXCEPTION {
            @Override
            public void fail() throws Exception {
                throw new InterruptedException("on purpose");
            }
        },
        INTERRUPTED_THREAD {
            @Override
            public void fail() {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("on purpose");
            }
        },
        INTERRUPTED_AND_RETURNED {
            @Override
            public void fail() {
                Thread.currentThread().interrupt();
            }
        },
        SNEAKY_CHECKED {
            @Override
            public void fail() throws Exception {
                throw new java.io.IOException("on purpose");
            }
        },
    }

    @ParameterizedTest
    @org.junit.jupiter.params.provider.EnumSource
    void subscribe_handlerThrowsAnythingAtAll_memberGoesOn(Failure failure) {
        String stream = newStream();
        publishTexts(stream, 0, 40);
        AtomicInteger failed = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription subscription = eventSql.subscribe(consumer(stream, "c"), event -> {
            if (failed.incrementAndGet() <= 5) {
                failure.fail();
            }
            handled.add(event);
        })) {
            handled.awaitSize(40).assertOnceAndInOrder();
            publishTexts(stream, 40, 80);
            handled.awaitSize(80).assertOnceAndInOrder();
            assertThat(subscription.isRunning()).isTrue();
            await().until(() -> committed(stream, "c") == 80);
        }
    }

    @Test
    void subscribe_startLatest_beginsBehindWhatIsStored() {
        String stream = newStream();
        publishTexts(stream, 0, 100);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withStartPosition(StartPosition.LATEST);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            assertThat(eventSql.positions(stream, "c")).allMatch(p -> p.nextOffset() == p.head());
            publishTexts(stream, 100, 150);
            handled.awaitSize(50);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(100, 150));
        // It is known now: the start position no longer matters.
        publishTexts(stream, 150, 200);
        try (Subscription ignored = eventSql.subscribe(spec.withStartPosition(StartPosition.EARLIEST), handled::add)) {
            handled.awaitSize(100);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(100, 200));
    }

    @Test
    void close_whileEventsKeepComing_nextSubscriptionGoesOnExactlyThere() throws Exception {
        String stream = newStream();
        AtomicBoolean end = new AtomicBoolean();
        AtomicInteger published = new AtomicInteger();
        Handled handled = new Handled();
        try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<?> publishing = executor.submit(() -> {
                while (!end.get() && published.get() < 200_000) {
                    publishTexts(stream, published.get(), published.addAndGet(20));
                }
            });
            for (int round = 1; round <= 15; round++) {
                ConsumerSpec spec = consumer(stream, "c").withCommitInterval(Duration.ofMillis(1));
                Subscription subscription = round % 2 == 0
                        ? eventSql.subscribe(spec, handled::add)
                        : eventSql.subscribeBatch(spec, handled::addAll);
                handled.awaitSize(handled.size() + 200);
                subscription.close();
                assertThat(subscription.isRunning()).isFalse();
                assertThat(committed(stream, "c")).as("round %d", round).isEqualTo(handled.size());
            }
            end.set(true);
            publishing.get(30, TimeUnit.SECONDS);
        }
        handled.assertOnceAndInOrder();
    }

    @Test
    void close_handlerStillRunning_returnsFalseAtTheTimeoutAndItsEventsComeAgain() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        publisher.publish(stream, Event.ofText("x"));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Subscription subscription = eventSql.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
        });
        await().until(() -> begun.getCount() == 0);
        assertThat(subscription.close(Duration.ofMillis(100))).isFalse();
        assertThat(subscription.isRunning()).isFalse();
        release.countDown();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            handled.awaitSize(1);
        }
    }

    @Test
    void close_handlerEndsInTime_returnsTrueAndCommitsIt() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        publisher.publish(stream, Event.ofText("k", "x"));
        publisher.publish(stream, Event.ofText("k", "y"));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        Subscription subscription = eventSql.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
            handled.add(event);
        });
        await().until(() -> begun.getCount() == 0);
        CompletableFuture<Boolean> closed =
                CompletableFuture.supplyAsync(() -> subscription.close(Duration.ofSeconds(30)));
        await().until(() -> !subscription.isRunning());
        release.countDown();
        assertThat(closed.join()).isTrue();
        assertThat(handled.texts()).as("none is begun once it is closing").containsExactly("x");
        assertThat(committed(stream, "c")).isEqualTo(1);
        assertThat(subscription.close(Duration.ZERO)).as("again").isTrue();
    }

    @Test
    void positions_sayHowFarTheConsumerIs() {
        String stream = newStream();
        assertThat(eventSql.positions(stream, "never_started")).isEmpty();
        publishTexts(stream, 0, 100);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            release.await();
            handled.add(event);
        })) {
            await().until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.epoch() == 1));
            List<ConsumerPosition> positions = eventSql.positions(stream, "c");
            assertThat(positions).hasSize(shards * PARTITIONS).allMatch(p -> p.nextOffset() == 0);
            assertThat(positions)
                    .isSortedAccordingTo(Comparator.comparingInt(ConsumerPosition::shard)
                            .thenComparingInt(ConsumerPosition::partition));
            assertThat(positions.stream().mapToLong(ConsumerPosition::lag).sum())
                    .isEqualTo(100);
            release.countDown();
            handled.awaitSize(100);
            await().untilAsserted(
                            () -> assertThat(eventSql.positions(stream, "c")).allMatch(p -> p.lag() == 0));
        }
        assertThat(cluster.open().positions(stream, "c").stream()
                        .mapToLong(ConsumerPosition::nextOffset)
                        .sum())
                .isEqualTo(100);
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> eventSql.positions("no_such_stream", "c"));
    }

    // Waking up

    @Test
    void wakeUp_publishedByAnotherInstance_arrivesWithoutAPoll() {
        EventSql consuming = cluster.open(settings -> settings.pollInterval(Duration.ofMinutes(1)));
        EventSql publishing = cluster.open();
        String stream = newStream();
        Handled handled = new Handled();
        try (Subscription ignored = consuming.subscribe(consumer(stream, "c"), handled::add)) {
            publishing.publisher().publish(stream, Event.ofText("key-0", "0")); // may be found as it starts
            handled.awaitSize(1);
            await().untilAsserted(() -> assertThat(listeners()).hasSizeGreaterThanOrEqualTo(shards));
            for (int i = 1; i < 20; i++) {
                publishing.publisher().publish(stream, Event.ofText("key-" + i, "" + i));
                handled.awaitSize(i + 1); // less than the poll interval
            }
        }
    }

    /** Nothing of these streams was handled before, so nobody looks at them: only a signal tells. */
    @Test
    void wakeUp_firstEventsOfManyStreams_areSignalled() {
        EventSql consuming = cluster.open(settings -> settings.pollInterval(Duration.ofMinutes(1)));
        EventSql publishing = cluster.open();
        List<String> names = Stream.generate(this::newStream).limit(10).toList();
        Handled handled = new Handled();
        for (String name : names) {
            consuming.subscribe(consumer(name, "c"), handled::add);
        }
        await().untilAsserted(() -> assertThat(listeners()).hasSizeGreaterThanOrEqualTo(shards));
        for (String name : names) {
            publishing.publisher().publish(name, Event.ofText("key", name));
        }
        handled.awaitSize(names.size()); // less than the poll interval
    }

    /** The publisher signals once and then not for a long time; as long as events come, the consumer finds them. */
    @Test
    void wakeUp_eventsFollowEachOther_areFoundWithoutSignals() {
        EventSql consuming = cluster.open(settings -> settings.pollInterval(Duration.ofMinutes(1)));
        EventSql publishing = cluster.open(settings -> settings.notifyInterval(Duration.ofSeconds(10)));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        AtomicInteger pages = new AtomicInteger();
        long start = System.nanoTime();
        try (Subscription ignored = consuming.subscribeBatch(consumer(stream, "c"), page -> pages.incrementAndGet())) {
            while (pages.get() < 5 * shards) {
                publishing.publisher().publish(stream, Event.ofText("tick"));
                assertThat(Duration.ofNanos(System.nanoTime() - start))
                        .as("pages found without signals: %s", pages)
                        .isLessThan(Duration.ofSeconds(9));
            }
        }
    }

    private List<String> listeners() throws SQLException {
        List<String> pids = new ArrayList<>();
        for (DataSource dataSource : cluster.dataSources()) {
            pids.addAll(Sql.query(
                    dataSource,
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"));
        }
        return pids;
    }

    @Test
    void wakeUp_listeningConnectionIsCut_listensAgain() throws SQLException {
        EventSql consuming = cluster.open(settings -> settings.pollInterval(Duration.ofMinutes(1)));
        String stream = newStream();
        EventSql publishing = cluster.open();
        Handled handled = new Handled();
        try (Subscription ignored = consuming.subscribe(consumer(stream, "c"), handled::add)) {
            for (int round = 0; round < 3; round++) {
                await().untilAsserted(() -> assertThat(listeners()).hasSizeGreaterThanOrEqualTo(shards));
                cluster.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        + " WHERE datname = current_database() AND query LIKE 'LISTEN%'");
                for (int i = 0; i < 10; i++) {
                    publishing.publisher().publish(stream, Event.ofText("key-" + i, round + "/" + i));
                }
                handled.awaitSize((round + 1) * 10);
            }
            handled.assertOnceAndInOrder();
        }
    }

    @Test
    void wakeUp_signalLost_isFoundByThePoll() throws SQLException {
        EventSql consuming = cluster.open(settings -> settings.pollInterval(Duration.ofMillis(100)));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        Handled handled = new Handled();
        try (Subscription ignored = consuming.subscribe(consumer(stream, "c"), handled::add)) {
            publisher.publish(stream, Event.ofText("signalled"));
            handled.awaitSize(1);
            int expected = 1;
            for (int shard = 0; shard < shards; shard++) {
                // As a publisher does that dies between its commit and its signal.
                try (Connection connection = database(shard).getConnection()) {
                    appendWithoutSignal(connection, stream);
                }
                handled.awaitSize(++expected);
            }
        }
    }

    private static void appendWithoutSignal(Connection connection, String stream) throws SQLException {
        int streamId =
                Integer.parseInt(Sql.query(connection, "SELECT stream_id FROM eventsql.stream WHERE name = ?", stream)
                        .getFirst());
        new AppendStatement(new SqlSchema("eventsql"))
                .execute(
                        connection,
                        UUID.randomUUID(),
                        1,
                        1,
                        new AppendStatement.Rows(
                                new String[] {stream},
                                new int[] {streamId},
                                new int[] {0},
                                new int[] {1},
                                new int[] {1},
                                new int[] {0},
                                new String[] {null},
                                new byte[][] {{1}},
                                new String[] {null}));
    }

    // Ending

    @Test
    void closeInstance_whatWaits_isStoredAndFurtherCallsAreRefused() {
        EventSql closing = cluster.open();
        String stream = newStream();
        EventPublisher ofClosing = closing.publisher();
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 3_000)
                .mapToObj(i -> ofClosing.publishAsync(stream, Event.ofText("key-" + i % 10, "" + i)))
                .toList();
        assertThat(closing.close(Duration.ofSeconds(30))).isTrue();
        assertThat(futures).allMatch(future -> future.isDone() && !future.isCompletedExceptionally());
        assertThat(readAll(stream)).hasSize(3_000);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> ofClosing.publish(stream, Event.ofText("late")))
                .withMessageContaining("closed");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> closing.subscribe(consumer(stream, "c"), event -> {}))
                .withMessageContaining("closed");
        assertThat(closing.close(Duration.ZERO)).as("again").isTrue();
        assertThat(readAll(stream)).hasSize(3_000);
    }

    @Test
    void closeInstance_handlerStillRunning_returnsFalseAtTheTimeout() {
        EventSql closing = cluster.open();
        String stream = newStream();
        publishTexts(stream, 0, 10);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        closing.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
        });
        await().until(() -> begun.getCount() == 0);
        assertThat(closing.close(Duration.ofMillis(200))).isFalse();
        release.countDown();
    }

    @Test
    void closeInstance_threads_end() {
        String stream = newStream();
        Set<Thread> before = libraryThreads();
        EventSql closing = cluster.open();
        Handled handled = new Handled();
        closing.subscribe(consumer(stream, "c"), handled::add);
        closing.publisher().publish(stream, Event.ofText("x"));
        handled.awaitSize(1);
        Set<Thread> own = libraryThreads();
        own.removeAll(before);
        assertThat(own).extracting(Thread::getName).anyMatch(name -> name.startsWith("eventsql-append-shard0"));
        assertThat(closing.close(Duration.ofSeconds(30))).isTrue();
        await().untilAsserted(() -> assertThat(own).noneMatch(Thread::isAlive));
        assertThat(committed(stream, "c")).isEqualTo(1);
    }

    private static Set<Thread> libraryThreads() {
        Set<Thread> threads = new HashSet<>(Thread.getAllStackTraces().keySet());
        threads.removeIf(thread -> !thread.getName().startsWith("eventsql-") || !thread.isAlive());
        return threads;
    }
}
