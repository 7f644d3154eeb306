package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Goal: compaction removes exactly the superseded events, and readers miss no last event of a key, while events are
 * published and steps are rolled back or their sessions are terminated. Method: random keys and tombstones; a consumer and
 * reads without a consumer run all the time, and see for each key its last event of the moment they began, or a later one,
 * in order; at the end what is stored is compared with a model of every event.
 */
@Timeout(180)
class CompactionModelIT {
    private static final Logger LOG = LoggerFactory.getLogger(CompactionModelIT.class);
    private static final int PARTITIONS = 2;
    private static final int ROUNDS = 25;
    private static final Duration DELAY = Duration.ofHours(1);

    private final Random random = Seeds.random("CompactionModelIT");
    private String name = "";
    private final List<List<Appended>> log = List.of(new ArrayList<>(), new ArrayList<>());
    private final Map<String, Integer> partitions = new HashMap<>();

    private record Appended(String key, boolean isTombstone) {}

    @ParameterizedTest
    @EnumSource(Storage.class)
    void lastEvents_stay_othersGo(Storage storage) throws Exception {
        StreamSpec stream =
                CompactionFixture.newStream(storage).withPartitions(PARTITIONS).withCompaction(new Compaction(DELAY));
        name = stream.name();
        try (CompactionFixture fixture = new CompactionFixture();
                ExecutorService executor = Executors.newCachedThreadPool()) {
            fixture.eventSql.createStream(stream);
            AtomicBoolean published = new AtomicBoolean();
            long seed = random.nextLong();
            Handled handled = new Handled();
            ConsumerSpec consumer = ConsumerSpec.of(name, "c").withPageEvents(50);
            try (Subscription ignored = fixture.eventSql.subscribe(consumer, handled::add)) {
                Future<?> publisher = executor.submit(() -> {
                    try {
                        for (int round = 0; round < ROUNDS; round++) {
                            publish(fixture);
                        }
                    } finally {
                        published.set(true);
                    }
                    return null;
                });
                Future<?> reader = executor.submit(() -> {
                    while (!published.get()) {
                        readAndCheck(fixture);
                    }
                    return null;
                });
                Future<?> compaction = executor.submit(() -> {
                    compactWithFaults(fixture, new Random(seed), published);
                    return null;
                });
                publisher.get(120, TimeUnit.SECONDS);
                reader.get(120, TimeUnit.SECONDS);
                compaction.get(120, TimeUnit.SECONDS);
                fixture.compact();
                readAndCheck(fixture);
                assertStored(fixture, false);
                await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> assertHandled(fixture, handled));
            }
            fixture.age(name, DELAY.plusMinutes(1));
            fixture.compact();
            fixture.age(name, DELAY.plusMinutes(1)); // what was not clean before
            fixture.compact();
            assertStored(fixture, true);
            readAndCheck(fixture);
        }
    }

    private void publish(CompactionFixture fixture) throws SQLException {
        List<String> keys = new ArrayList<>();
        int events = 1 + random.nextInt(150);
        for (int i = 0; i < events; i++) {
            keys.add(random.nextInt(30) == 0 ? null : "k" + random.nextInt(random.nextBoolean() ? 5 : 200));
        }
        List<EventPosition> positions = fixture.publish(name, keys);
        synchronized (log) {
            for (int i = 0; i < events; i++) {
                List<Appended> ofPartition = log.get(positions.get(i).partition());
                assertThat(positions.get(i).offset()).isEqualTo(ofPartition.size());
                ofPartition.add(new Appended(keys.get(i), false));
                if (keys.get(i) != null) {
                    partitions.put(keys.get(i), positions.get(i).partition());
                }
            }
        }
        for (int i = random.nextInt(10); i > 0; i--) {
            String key = "k" + random.nextInt(200);
            Integer partition = partitions.get(key);
            if (partition != null) {
                long offset = fixture.appendTombstone(name, partition, key);
                synchronized (log) {
                    assertThat(offset).isEqualTo(log.get(partition).size());
                    log.get(partition).add(new Appended(key, true));
                }
            }
        }
    }

    /** Takes steps in transactions of which some are rolled back and others lose their connection. */
    private void compactWithFaults(CompactionFixture fixture, Random faults, AtomicBoolean until) throws SQLException {
        while (!until.get()) {
            try (Connection connection = fixture.database.getConnection()) {
                connection.setAutoCommit(false);
                String session =
                        Sql.query(connection, "SELECT pg_backend_pid()").getFirst();
                Sql.query(connection, "SELECT eventsql.compact_v1()");
                switch (faults.nextInt(6)) {
                    case 0 -> connection.rollback();
                    case 1 -> Sql.query(fixture.database, "SELECT pg_terminate_backend(?)", Integer.parseInt(session));
                    default -> connection.commit();
                }
            } catch (SQLException e) { // an old pooled connection, or one that is closed after it was terminated
                LOG.debug("A step failed", e);
            }
            if (faults.nextInt(4) == 0) {
                Sql.execute(
                        fixture.database,
                        "UPDATE eventsql.replaced_table SET replaced_at = replaced_at - interval '40 s'");
            }
        }
    }

    private List<Map<String, Long>> lastOffsets() {
        List<Map<String, Long>> last = new ArrayList<>();
        synchronized (log) {
            for (List<Appended> ofPartition : log) {
                Map<String, Long> offsets = new HashMap<>();
                for (int offset = 0; offset < ofPartition.size(); offset++) {
                    offsets.put(ofPartition.get(offset).key(), (long) offset);
                }
                offsets.remove(null);
                last.add(offsets);
            }
        }
        return last;
    }

    private boolean isTombstone(int partition, long offset) {
        synchronized (log) {
            return log.get(partition).get((int) offset).isTombstone();
        }
    }

    private void readAndCheck(CompactionFixture fixture) {
        List<Map<String, Long>> last = lastOffsets();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            assertSees(partition, fixture.readAll(name, partition, 0, 40), last.get(partition));
        }
    }

    /** Offsets rise, and for each key there is its last event or a later one; unless it is a tombstone that has gone. */
    private void assertSees(int partition, List<StoredEvent> events, Map<String, Long> last) {
        assertThat(events.stream().map(StoredEvent::offset).toList())
                .doesNotHaveDuplicates()
                .isSorted();
        Map<String, Long> seen = new HashMap<>();
        events.forEach(event -> seen.put(event.key(), event.offset()));
        last.forEach((key, offset) -> {
            if (!isTombstone(partition, offset)) {
                assertThat(seen.get(key))
                        .as("last event of %s", key)
                        .isNotNull()
                        .isGreaterThanOrEqualTo(offset);
            }
        });
    }

    private void assertHandled(CompactionFixture fixture, Handled handled) {
        List<Map<String, Long>> last = lastOffsets();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            int of = partition;
            assertSees(
                    partition,
                    handled.events().stream()
                            .filter(event -> event.position().partition() == of)
                            .toList(),
                    last.get(partition));
            assertThat(fixture.eventSql
                            .consumer(name, "c")
                            .state()
                            .get(partition)
                            .nextOffset())
                    .isEqualTo(log.get(partition).size());
        }
    }

    /** Compares what is stored with the model: below what is clean, only the last event of each key is left. */
    private void assertStored(CompactionFixture fixture, boolean isDelayOver) throws SQLException {
        for (int partition = 0; partition < PARTITIONS; partition++) {
            List<Appended> ofPartition = log.get(partition);
            long clean = Sql.queryLong(
                    fixture.database,
                    "SELECT coalesce((SELECT clean_offset FROM eventsql.compaction_progress WHERE partition = "
                            + partition + " AND stream_id = " + fixture.streamId(name) + "), 0)");
            Map<String, Integer> last = new HashMap<>();
            for (int offset = 0; offset < clean; offset++) {
                last.put(ofPartition.get(offset).key(), offset);
            }
            List<Long> expected = new ArrayList<>();
            for (int offset = 0; offset < ofPartition.size(); offset++) {
                Appended event = ofPartition.get(offset);
                boolean isLast = event.key() == null || last.getOrDefault(event.key(), -1) == offset;
                if (offset >= clean || (isLast && !(isDelayOver && event.isTombstone()))) {
                    expected.add((long) offset);
                }
            }
            assertThat(fixture.offsets(name, partition))
                    .as("partition %d, clean below %d", partition, clean)
                    .isEqualTo(expected);
        }
    }
}
