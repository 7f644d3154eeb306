package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.load.OutboxLoad;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;

/**
 * Streams that store blocks, against a model in memory. Goal: whatever is published, in batches of any size, directly or
 * through the outbox, is read back as it is from any offset on, by the library and by SQL, and no block crosses a segment's
 * end. Method: random events in segments of 100, so that most batches cross an end or two.
 */
@Timeout(180)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class BlocksModelIT {
    private static final String STREAM = "orders";
    private static final int PARTITIONS = 2;
    private static final int STEPS = 30;
    private static final int BLOCK_BYTES_MAX = 8_000;

    private final Random random = Seeds.random("BlocksModelIT");
    private final List<TreeMap<Long, Event>> model = List.of(new TreeMap<>(), new TreeMap<>());
    private TestCluster cluster;
    private EventSql eventSql;
    private DataSource database;

    @BeforeAll
    void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
        database = cluster.dataSources().getFirst();
        eventSql.createStream(StreamSpec.of(STREAM)
                .withPartitions(PARTITIONS)
                .withSegmentSize(100)
                .withStorage(Storage.BLOCKS));
    }

    @AfterAll
    void close() {
        cluster.close();
    }

    @Test
    void randomBatches_areReadBackAsTheyAre() throws SQLException {
        for (int step = 0; step < STEPS; step++) {
            publish();
        }
        publishThroughOutbox();
        publish();
        assertBlocks();
        assertSql();
        for (int i = 0; i < STEPS; i++) {
            assertRead();
        }
    }

    private void publish() {
        List<Event> events = new ArrayList<>();
        int size = random.nextInt(10) == 0 ? 300 : 1 + random.nextInt(40);
        for (int i = 0; i < size; i++) {
            events.add(event());
        }
        List<EventPosition> positions = eventSql.publisher().publishAll(STREAM, events);
        for (int i = 0; i < size; i++) {
            EventPosition position = positions.get(i);
            model.get(position.partition()).put(position.offset(), events.get(i));
        }
    }

    private void publishThroughOutbox() throws SQLException {
        List<Event> events = new ArrayList<>();
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            for (int i = 0; i < 250; i++) {
                events.add(Event.of("outbox-" + i, bytes(random.nextInt(500))));
                eventSql.outbox().publish(transaction, STREAM, events.get(i));
            }
            transaction.commit();
        }
        OutboxLoad.awaitRelayed(eventSql.outbox());
        for (int partition = 0; partition < PARTITIONS; partition++) {
            TreeMap<Long, Event> stored = model.get(partition);
            long next = stored.isEmpty() ? 0 : stored.lastKey() + 1;
            for (StoredEvent event : eventSql.read(new EventPosition(STREAM, 0, partition, next), 1_000)) {
                int number = Integer.parseInt(event.key().substring("outbox-".length()));
                stored.put(event.offset(), events.set(number, null));
            }
        }
        assertThat(events).as("all relayed").containsOnlyNulls();
    }

    private Event event() {
        String key = random.nextInt(5) == 0 ? null : "k-ü€😀".substring(0, 1 + random.nextInt(4)) + random.nextInt(50);
        if (key != null && random.nextInt(10) == 0) {
            return Event.tombstone(key);
        }
        Event event = new Event(key, bytes(valueBytes()), Map.of());
        if (random.nextInt(3) == 0) {
            event = event.withHeader("type", "naïve \"quoted\" \n " + random.nextInt(100));
        }
        return event;
    }

    private int valueBytes() {
        return switch (random.nextInt(40)) {
            case 0 -> 100_000 + random.nextInt(1_000);
            case 1 -> BLOCK_BYTES_MAX - 100 + random.nextInt(200);
            case 2, 3 -> 2_000 + random.nextInt(4_000);
            case 4, 5 -> 0;
            default -> random.nextInt(400);
        };
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private void assertBlocks() throws SQLException {
        assertThat(Sql.query(database, """
                        SELECT b.* FROM eventsql.events_orders__blocks b
                        WHERE NOT EXISTS (
                            SELECT FROM eventsql.segment g
                            WHERE g.partition = b.partition AND g.first_offset <= b.event_offset - b.events + 1
                              AND g.end_offset > b.event_offset)"""))
                .as("blocks that cross the end of a segment")
                .isEmpty();
        assertThat(Sql.query(
                        database,
                        "SELECT octet_length(block) FROM eventsql.events_orders__blocks WHERE events > 1"
                                + " AND octet_length(block) > " + BLOCK_BYTES_MAX))
                .as("blocks that are too large")
                .isEmpty();
    }

    private void assertSql() throws SQLException {
        String row = "event_offset || ':' || coalesce(key, '-') || ':' || coalesce(encode(value, 'hex'), '-') || ':'"
                + " || coalesce(headers ->> 'type', '-')";
        for (int partition = 0; partition < PARTITIONS; partition++) {
            TreeMap<Long, Event> stored = model.get(partition);
            assertThat(Sql.query(
                            database,
                            "SELECT " + row + " FROM eventsql.events_orders WHERE partition = " + partition
                                    + " ORDER BY event_offset"))
                    .containsExactlyElementsOf(texts(stored));
            long from = random.nextLong(stored.lastKey());
            long below = from + random.nextLong(stored.lastKey());
            assertThat(Sql.query(
                            database,
                            "SELECT " + row + " FROM eventsql.event_range_v1('orders', " + partition + ", " + from
                                    + ", " + below + ")"))
                    .containsExactlyElementsOf(texts(stored.subMap(from, below)));
        }
        assertThat(Sql.query(database, """
                        SELECT b.partition || ':' || b.published_at
                        FROM eventsql.events_orders__blocks b
                        WHERE eventsql.offset_at_v1('orders', b.partition, b.published_at) <> (
                            SELECT min(e.event_offset) FROM eventsql.events_orders e
                            WHERE e.partition = b.partition AND e.published_at >= b.published_at)"""))
                .as("times whose first offset was not found")
                .isEmpty();
        assertThat(Sql.queryLong(
                        database,
                        "SELECT count(*) FROM eventsql.events_between_v1('orders', '2000-01-01', 'infinity')"))
                .isEqualTo(model.stream().mapToInt(Map::size).sum());
    }

    private static List<String> texts(Map<Long, Event> events) {
        return events.entrySet().stream()
                .map(entry -> {
                    Event event = entry.getValue();
                    String value = event.isTombstone() ? "-" : HexFormat.of().formatHex(event.value());
                    String key = event.key() == null ? "-" : event.key();
                    return entry.getKey() + ":" + key + ":" + value + ":"
                            + event.headers().getOrDefault("type", "-");
                })
                .toList();
    }

    private void assertRead() {
        int partition = random.nextInt(PARTITIONS);
        TreeMap<Long, Event> stored = model.get(partition);
        long from = random.nextLong(stored.lastKey() + 1);
        int max = 1 + random.nextInt(random.nextBoolean() ? 10 : 500);
        List<StoredEvent> read = eventSql.read(new EventPosition(STREAM, 0, partition, from), max);
        assertThat(read).hasSize((int) Math.min(max, stored.lastKey() + 1 - from));
        long next = from;
        for (StoredEvent event : read) {
            Event published = stored.get(next);
            assertThat(event.offset()).isEqualTo(next++);
            assertThat(event.key()).isEqualTo(published.key());
            assertThat(event.value()).isEqualTo(published.value());
            assertThat(event.headers()).isEqualTo(published.headers());
            assertThat(event.isTombstone()).isEqualTo(published.isTombstone());
        }
    }

    @Test
    void walOfLargeBatches_isLittleMoreThanTheEvents() throws SQLException {
        eventSql.createStream(StreamSpec.of("wal").withPartitions(1).withStorage(Storage.BLOCKS));
        byte[] value = bytes(200);
        List<Event> batch = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            batch.add(Event.of("customer-" + i % 900, value).withHeader("type", "a"));
        }
        eventSql.publisher().publishAll("wal", batch); // creates segments, and dirties pages
        Sql.execute(TestCluster.server().adminDataSource(), "CHECKPOINT");
        long before = wal();
        for (int i = 0; i < 20; i++) {
            eventSql.publisher().publishAll("wal", batch);
        }
        long bytes = batch.stream()
                .mapToLong(event -> event.key().getBytes(StandardCharsets.UTF_8).length
                        + event.value().length
                        + "{\"type\":\"a\"}".length())
                .sum();
        double ratio = (wal() - before) / (20.0 * bytes);
        System.out.printf("WAL per byte of keys, values and headers, batches of 1,000: %.3f%n", ratio);
        assertThat(ratio).isLessThan(1.3);
    }

    private long wal() throws SQLException {
        return Sql.queryLong(database, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
    }
}
