package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Reading of streams on two shards, next to what SQL says about them. */
@Timeout(120)
class EventReaderIT {
    private static final String SEED = "eventsql.test.seed";
    private static final ReaderSettings SMALL_PAGES = ReaderSettings.defaults().withPage(7, 1_000);

    private static TestDatabases databases;
    private static List<DataSource> inAnyOrder;

    @BeforeAll
    static void start() {
        databases = new TestDatabases(2);
        inAnyOrder = new ArrayList<>(databases.shards);
        Collections.reverse(inAnyOrder);
    }

    @AfterAll
    static void stop() {
        databases.close();
    }

    private static String create(String stream, Storage storage) {
        databases.eventSql.createStream(
                StreamSpec.of(stream).withPartitions(3).withSegmentSize(100).withStorage(storage));
        return stream;
    }

    /** Publishes events with and without keys, headers, and values, some of them large. */
    private static void publish(String stream, Random random, int events) {
        List<Event> batch = new ArrayList<>();
        for (int i = 0; i < events; i++) {
            String key = "k" + random.nextInt(200);
            Event event = random.nextInt(10) == 0
                    ? Event.tombstone(key)
                    : random.nextInt(3) == 0
                            ? Event.ofText("ä".repeat(random.nextInt(3_000)))
                            : Event.ofText(key, "e" + i);
            batch.add(
                    random.nextBoolean()
                            ? event
                            : event.withHeader("n", "\"" + i).withHeader("ü", "\n"));
            if (batch.size() == 50) {
                databases.eventSql.publisher().publishAll(stream, batch);
                batch.clear();
            }
        }
        databases.eventSql.publisher().publishAll(stream, batch);
    }

    private static Random random() {
        long seed = Long.getLong(SEED, System.nanoTime());
        System.out.println("EventReaderIT: repeat with -D" + SEED + "=" + seed);
        return new Random(seed);
    }

    /** Returns the events of all shards as text, by SQL over the stream's table. */
    private static List<String> stored(String stream) {
        List<String> events = new ArrayList<>();
        for (int shard = 0; shard < databases.shards.size(); shard++) {
            events.addAll(TestDatabases.query(
                    databases.shards.get(shard),
                    "SELECT concat_ws('|', " + shard + ", partition, event_offset, coalesce(key, '-'),"
                            + " coalesce(encode(value, 'hex'), '-'), coalesce(headers::text, '-'),"
                            + " (extract(epoch FROM published_at) * 1000000)::bigint)"
                            + " FROM eventsql.events_" + stream + " ORDER BY partition, event_offset"));
        }
        return events;
    }

    private static String text(LogEvent event) {
        StringBuilder hex = new StringBuilder();
        if (event.value() == null) {
            hex.append('-');
        } else {
            for (byte each : event.value()) {
                hex.append(String.format("%02x", each));
            }
        }
        long micros = ChronoUnit.MICROS.between(Instant.EPOCH, event.publishedAt());
        return String.join(
                "|",
                event.partition().shard() + "",
                event.partition().partition() + "",
                event.offset() + "",
                event.key() == null ? "-" : event.key(),
                hex,
                event.headersJson() == null ? "-" : event.headersJson(),
                micros + "");
    }

    private static List<LogEvent> readAll(EventReader reader, CursorSpec spec) throws InterruptedException {
        StreamCursor cursor = reader.cursor(spec);
        List<LogEvent> events = new ArrayList<>();
        while (!cursor.isFinished()) {
            events.addAll(cursor.poll(Duration.ZERO));
        }
        return events;
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void cursor_bounded_readsWhatSqlReads(Storage storage) throws InterruptedException {
        String stream = create("bounded_" + storage.name().toLowerCase(Locale.ROOT), storage);
        Random random = random();
        publish(stream, random, 900);
        for (ReaderSettings settings : List.of(ReaderSettings.defaults(), SMALL_PAGES)) {
            try (EventReader reader = EventReader.open(inAnyOrder, settings)) {
                List<LogEvent> events = readAll(reader, CursorSpec.of(stream).until(StreamPosition.LATEST));
                events.sort((a, b) -> a.partition().equals(b.partition())
                        ? Long.compare(a.offset(), b.offset())
                        : a.partition().compareTo(b.partition()));
                assertThat(events.stream().map(EventReaderIT::text).toList()).isEqualTo(stored(stream));
                events.forEach(event -> assertThat(event.headers()).hasSize(event.headersJson() == null ? 0 : 2));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void cursor_anyStartAndEnd_readsTheRange(Storage storage) throws InterruptedException {
        String stream = create("range_" + storage.name().toLowerCase(Locale.ROOT), storage);
        publish(stream, random(), 200);
        Instant middle = Instant.parse(TestDatabases.query(
                        databases.shards.get(1),
                        "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
                .get(0));
        int before = stored(stream).size();
        publish(stream, random(), 100);
        try (EventReader reader = EventReader.open(inAnyOrder, SMALL_PAGES)) {
            CursorSpec all = CursorSpec.of(stream).until(StreamPosition.LATEST);
            assertThat(readAll(reader, all.from(StreamPosition.LATEST))).isEmpty();
            assertThat(readAll(reader, all.from(StreamPosition.at(middle)))).hasSize(300 - before);
            assertThat(readAll(reader, all.until(StreamPosition.at(middle)))).hasSize(before);
            assertThat(readAll(reader, all.from(StreamPosition.atOffset(5)).until(StreamPosition.atOffset(15))))
                    .hasSize(60)
                    .allMatch(event -> event.offset() >= 5 && event.offset() < 15);
            assertThat(reader.ranges(stream))
                    .hasSize(6)
                    .allMatch(range -> range.logStart() == 0)
                    .extracting(PartitionRange::partition)
                    .isSorted();
            assertThat(reader.ranges(stream).stream()
                            .mapToLong(PartitionRange::head)
                            .sum())
                    .isEqualTo(300);
        }
    }

    @Test
    void cursor_unbounded_followsAndResumes() throws InterruptedException {
        String stream = create("followed", Storage.ROWS);
        try (EventReader reader = EventReader.open(inAnyOrder)) {
            StreamCursor cursor = reader.cursor(CursorSpec.of(stream).from(StreamPosition.LATEST));
            assertThat(cursor.poll(Duration.ZERO)).isEmpty();
            databases.eventSql.publisher().publish(stream, Event.ofText("k", "first"));
            assertThat(cursor.poll(Duration.ofMinutes(1)))
                    .extracting(LogEvent::text)
                    .containsExactly("first");
            Map<StreamPartition, ReadPosition> positions = cursor.positions();
            databases.eventSql.publisher().publish(stream, Event.ofText("k", "second"));
            assertThat(cursor.poll(Duration.ofMinutes(1)))
                    .extracting(LogEvent::text)
                    .containsExactly("second");

            StreamCursor resumed = reader.cursor(CursorSpec.of(stream).resuming(positions));
            assertThat(resumed.poll(Duration.ofMinutes(1)))
                    .extracting(LogEvent::text)
                    .containsExactly("second");
            assertThat(resumed.isFinished()).isFalse();
        }
    }

    @Test
    void open_databasesThatAreNotTheCluster_isRejected() {
        try (TestDatabases other = new TestDatabases(1)) {
            assertThatExceptionOfType(ShardIdentityException.class)
                    .isThrownBy(() -> EventReader.open(databases.shards.subList(0, 1)))
                    .withMessageContaining("but 1 databases are given");
            DataSource first = databases.shards.get(0);
            assertThatExceptionOfType(ShardIdentityException.class)
                    .isThrownBy(() -> EventReader.open(List.of(first, first)))
                    .withMessageContaining("Two of the databases are shard 0");
            assertThatExceptionOfType(ShardIdentityException.class)
                    .isThrownBy(() -> EventReader.open(List.of(first, other.shards.get(0))))
                    .withMessageContaining("belong to the clusters");
        }
        DataSource empty = TestDatabases.server().createDatabase("reader_empty");
        assertThatExceptionOfType(EventReaderException.class)
                .isThrownBy(() -> EventReader.open(List.of(empty)))
                .withMessageContaining("does not exist");
    }

    @Test
    void open_shardUnavailable_readsTheOthers() throws InterruptedException {
        String stream = create("one_shard", Storage.ROWS);
        publish(stream, random(), 60);
        List<DataSource> oneIsDown = new ArrayList<>(databases.shards);
        PGSimpleDataSource down = new PGSimpleDataSource();
        down.setUrl("jdbc:postgresql://127.0.0.1:1/none");
        oneIsDown.set(1, down);
        try (EventReader reader = EventReader.open(oneIsDown)) {
            assertThat(reader.ranges(stream, 0)).hasSize(3);
            assertThatExceptionOfType(DatabaseUnavailableException.class).isThrownBy(() -> reader.ranges(stream, 1));
            StreamPartition partition = new StreamPartition(stream, 0, 0);
            assertThat(reader.read(partition, ReadPosition.at(0)).events()).isNotEmpty();
        }
    }

    /** Its first connection fails, and each later one only when it is released, as over a network that loses packets. */
    private static final class HangingDatabase extends PGSimpleDataSource {
        private static final long serialVersionUID = 1L;

        private final transient CountDownLatch connecting = new CountDownLatch(1);
        private final transient CountDownLatch released = new CountDownLatch(1);
        private final AtomicBoolean hangs = new AtomicBoolean();

        @Override
        public Connection getConnection() throws SQLException {
            if (hangs.getAndSet(true)) {
                connecting.countDown();
                try {
                    released.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            throw new SQLException("no connection", "08001");
        }
    }

    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void read_anotherThreadConnectsToAShardThatHangs_isNotDelayed() throws Exception {
        String stream = create("beside_hanging", Storage.ROWS);
        publish(stream, random(), 60);
        HangingDatabase hanging = new HangingDatabase();
        List<DataSource> oneHangs = new ArrayList<>(databases.shards);
        oneHangs.set(1, hanging);
        try (EventReader reader = EventReader.open(oneHangs);
                ExecutorService other = Executors.newSingleThreadExecutor()) {
            try {
                Future<?> waiting = other.submit(() -> reader.ranges(stream, 1));
                hanging.connecting.await();
                assertThat(reader.ranges(stream, 0)).hasSize(3);
                assertThat(waiting.isDone()).isFalse();
            } finally {
                hanging.released.countDown();
            }
        }
    }

    @Test
    void ranges_unknownStream_isRejected() {
        try (EventReader reader = EventReader.open(inAnyOrder)) {
            assertThat(reader.ranges("none", 0)).isEmpty();
            assertThatExceptionOfType(UnknownStreamException.class).isThrownBy(() -> reader.ranges("none"));
            assertThatExceptionOfType(UnknownStreamException.class)
                    .isThrownBy(() -> reader.cursor(CursorSpec.of("none")));
            String stream = create("three_partitions", Storage.ROWS);
            assertThatExceptionOfType(UnknownStreamException.class)
                    .isThrownBy(() -> reader.read(new StreamPartition(stream, 0, 3), ReadPosition.at(1)));
        }
    }

    @Test
    void read_asReaderRole_needsNoMore() throws Exception {
        try (TestDatabases own = new TestDatabases(1)) {
            own.eventSql.createStream(StreamSpec.of("roles").withPartitions(1));
            own.eventSql.createStream(
                    StreamSpec.of("role_blocks").withPartitions(1).withStorage(Storage.BLOCKS));
            PGSimpleDataSource admin =
                    copy(TestDatabases.server().adminDataSource(), ((PGSimpleDataSource) own.shards.get(0)).getUrl());
            try (var file = EventReader.class.getResourceAsStream("/io/eventsql/db/roles.sql")) {
                TestDatabases.execute(admin, new String(file.readAllBytes(), StandardCharsets.UTF_8));
            }
            TestDatabases.execute(
                    admin,
                    "CREATE ROLE reader_login LOGIN PASSWORD 'test' IN ROLE eventsql_reader",
                    "ALTER ROLE reader_login SET default_transaction_isolation = 'serializable'",
                    "GRANT eventsql_owner TO " + TestDatabases.server().username());
            for (String stream : List.of("roles", "role_blocks")) {
                own.eventSql.publisher().publish(stream, Event.ofText("k", "v"));
                try (EventReader reader = EventReader.connect(
                        List.of(admin.getUrl()), "reader_login", "test", ReaderSettings.defaults())) {
                    assertThat(readAll(
                                    reader,
                                    CursorSpec.of(stream)
                                            .from(StreamPosition.at(Instant.EPOCH))
                                            .until(StreamPosition.LATEST)))
                            .extracting(LogEvent::text)
                            .containsExactly("v");
                }
            }
        }
    }

    static PGSimpleDataSource copy(DataSource of, String url) {
        PGSimpleDataSource from = (PGSimpleDataSource) of;
        PGSimpleDataSource copy = new PGSimpleDataSource();
        copy.setUrl(url);
        copy.setUser(from.getUser());
        copy.setPassword(from.getPassword());
        return copy;
    }

    @Test
    void close_pooledConnection_isReturnedAsItWas() throws Exception {
        String stream = create("pooled", Storage.ROWS);
        publish(stream, random(), 60);
        try (HikariDataSource first = TestDatabases.pool(databases.shards.get(0));
                HikariDataSource second = TestDatabases.pool(databases.shards.get(1))) {
            first.setMaximumPoolSize(1);
            try (EventReader reader = EventReader.open(List.of(second, first))) {
                readAll(reader, CursorSpec.of(stream).until(StreamPosition.LATEST));
            }
            try (Connection connection = first.getConnection()) {
                assertThat(connection.getAutoCommit()).isTrue();
                assertThat(connection.isReadOnly()).isFalse();
                assertThat(connection.getTransactionIsolation()).isEqualTo(Connection.TRANSACTION_READ_COMMITTED);
            }
            assertThat(TestDatabases.query(first, "SHOW statement_timeout")).containsExactly("0");
        }
    }

    @Test
    void read_connectionTerminated_reconnects() throws InterruptedException {
        String stream = create("reconnected", Storage.ROWS);
        publish(stream, random(), 60);
        List<String> urls = inAnyOrder.stream()
                .map(database -> ((PGSimpleDataSource) database).getUrl())
                .toList();
        String user = TestDatabases.server().username();
        String password = TestDatabases.server().password();
        try (EventReader reader = EventReader.connect(urls, user, password, ReaderSettings.defaults())) {
            StreamCursor cursor = reader.cursor(CursorSpec.of(stream).until(StreamPosition.LATEST));
            assertThat(TestDatabases.query(TestDatabases.server().adminDataSource(), """
                            SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                            WHERE application_name = 'eventsql-reader'"""))
                    .containsExactly("t", "t");
            List<LogEvent> events = new ArrayList<>();
            while (!cursor.isFinished()) {
                events.addAll(cursor.poll(Duration.ZERO));
            }
            assertThat(events).hasSize(60);
        }
    }
}
