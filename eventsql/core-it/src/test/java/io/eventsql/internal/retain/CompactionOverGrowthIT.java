package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: of a compacted stream that grows, the last event of each key stays and is found, and no event stays in a partition that
 * its key has left once a later one is compacted.
 */
@Timeout(180)
class CompactionOverGrowthIT {
    private static final Duration DELAY = Duration.ofHours(1);
    private static final Duration LONG_TIME = Duration.ofDays(2);
    private static final int KEYS = 40;

    private static CompactionFixture fixture;

    private final Random random = Seeds.random("CompactionOverGrowthIT");
    private final Map<String, String> last = new TreeMap<>();
    private int published;

    @BeforeAll
    static void open() {
        fixture = new CompactionFixture();
    }

    @AfterEach
    void stopCompacting() {
        fixture.stopCompacting();
    }

    @AfterAll
    static void close() {
        fixture.close();
    }

    private static StreamSpec spec(Storage storage, int partitions) {
        return CompactionFixture.newStream(storage).withPartitions(partitions).withCompaction(new Compaction(DELAY));
    }

    /** Publishes values and tombstones of random keys. */
    private void publish(EventSql eventSql, String stream, int events) {
        for (int from = 0; from < events; from += 25) {
            List<Event> batch = new ArrayList<>();
            for (int i = 0; i < 25; i++) {
                String key = "k" + random.nextInt(KEYS);
                String value = random.nextInt(4) == 0 ? null : "%040d".formatted(published++);
                batch.add(value == null ? Event.tombstone(key) : Event.ofText(key, value));
                last.put(key, value);
            }
            eventSql.publisher().publishAll(stream, batch);
        }
    }

    private void assertState(EventSql reader, String stream) throws SQLException {
        Map<String, String> present = new TreeMap<>(last);
        present.values().removeIf(value -> value == null);
        Map<String, String> found = new TreeMap<>();
        for (String key : last.keySet()) {
            reader.latest(stream, key).ifPresent(event -> found.put(key, event.text()));
        }
        assertThat(found).isEqualTo(present);
        Map<String, String> viewed = new TreeMap<>();
        for (String row : Sql.query(
                fixture.database,
                "SELECT key || '=' || convert_from(value, 'UTF8') FROM eventsql.events_" + stream + "__latest")) {
            assertThat(viewed.put(row.split("=")[0], row.split("=")[1]))
                    .as("two rows of a key")
                    .isNull();
        }
        assertThat(viewed).isEqualTo(present);
        Map<String, String> bySql = new TreeMap<>();
        for (String key : last.keySet()) {
            Sql.query(fixture.database, "SELECT convert_from(value, 'UTF8') FROM eventsql.latest_v2(?, ?)", stream, key)
                    .forEach(value -> bySql.put(key, value));
        }
        assertThat(bySql).isEqualTo(present);
    }

    /** Returns the keys of the events in closed segments, with a key for each event. */
    private static List<String> keysInClosedSegments(String stream, String condition) throws SQLException {
        return Sql.query(
                fixture.database,
                "SELECT e.key FROM eventsql.events_" + stream + " e JOIN eventsql.stream s ON s.name = ?"
                        + " JOIN eventsql.segment g ON g.stream_id = s.stream_id AND g.partition = e.partition"
                        + " AND e.event_offset >= g.first_offset AND e.event_offset < g.end_offset"
                        + " WHERE g.state = 'closed' AND e.key IS NOT NULL AND " + condition,
                stream);
    }

    @ParameterizedTest
    @EnumSource
    void grow_whileCompacted_lastEventOfEachKeyStaysAndOthersGo(Storage storage) throws Exception {
        StreamSpec spec = spec(storage, 2);
        String stream = spec.name();
        fixture.eventSql.createStream(spec);
        try (EventSql other = fixture.cluster.open(); // has the first map until it finds out
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            publish(fixture.eventSql, stream, 400);
            assertState(other, stream);
            AtomicBoolean stopped = new AtomicBoolean();
            Future<?> compaction = executor.submit(() -> {
                while (!stopped.get()) {
                    fixture.compact();
                }
                return null;
            });
            for (int[] growths : new int[][] {{3}, {5, 7}}) { // without an event in between, too
                for (int partitions : growths) {
                    fixture.eventSql.grow(stream, partitions);
                }
                for (int i = 0; i < 3; i++) {
                    publish(fixture.eventSql, stream, 150);
                    assertState(other, stream);
                }
            }
            publish(fixture.eventSql, stream, 2_500);
            stopped.set(true);
            compaction.get(60, TimeUnit.SECONDS);

            fixture.age(stream, LONG_TIME);
            fixture.compact();
            assertState(other, stream);
            assertThat(keysInClosedSegments(stream, "true")).doesNotHaveDuplicates();
            fixture.age(stream, LONG_TIME);
            fixture.compact();
            fixture.age(stream, LONG_TIME); // what was not clean before
            fixture.compact();
            assertState(other, stream);
            assertThat(keysInClosedSegments(stream, "e.value IS NULL"))
                    .as("tombstones")
                    .isEmpty();
        }
    }

    /** The segment of the giver in which the growth happened has not ended: nothing of it can be removed yet. */
    @ParameterizedTest
    @EnumSource
    void tombstoneOfReceiver_giverHasAnEarlierEventOfItsKey_stays(Storage storage) throws Exception {
        StreamSpec spec = spec(storage, 1);
        String stream = spec.name();
        fixture.eventSql.createStream(spec);
        for (int i = 0; i < 20; i++) {
            fixture.publish(stream, "k" + i);
        }
        fixture.eventSql.grow(stream, 2);
        String moved = null;
        String stayed = null;
        for (int i = 0; i < 20; i++) {
            EventPosition at = fixture.eventSql.publisher().publish(stream, Event.tombstone("k" + i));
            moved = at.partition() == 1 ? "k" + i : moved;
            stayed = at.partition() == 0 ? "k" + i : stayed;
        }
        fill(stream, moved);
        ageAndCompact(stream);
        assertThat(fixture.eventSql.latest(stream, "k" + 0).map(StoredEvent::text))
                .isEmpty();
        assertThat(keysInClosedSegments(stream, "e.partition = 1 AND e.value IS NULL"))
                .as("tombstones of moved keys")
                .isNotEmpty();

        fill(stream, stayed);
        ageAndCompact(stream);
        assertThat(keysInClosedSegments(stream, "true")).containsExactlyInAnyOrder(moved, stayed);
        for (int i = 0; i < 20; i++) {
            String key = "k" + i;
            assertThat(fixture.eventSql.latest(stream, key).isPresent())
                    .isEqualTo(key.equals(moved) || key.equals(stayed));
        }
    }

    /** Ends two segments of the partition of a key. */
    private static void fill(String stream, String key) {
        for (int i = 0; i < 4; i++) {
            fixture.publish(stream, Collections.nCopies(50, key));
        }
    }

    private static void ageAndCompact(String stream) throws SQLException {
        for (int i = 0; i < 3; i++) {
            fixture.age(stream, LONG_TIME);
            fixture.compact();
        }
    }
}
