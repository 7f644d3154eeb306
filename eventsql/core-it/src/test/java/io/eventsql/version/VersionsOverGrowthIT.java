package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Aggregate;
import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyEvents;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: versions of keys stay exact, and all events of a key are read in order, while the key moves to other partitions: from 2
 * partitions to 3, whose new one gets keys of both, and to 8.
 */
@Timeout(120)
class VersionsOverGrowthIT {
    private static final int KEYS = 40;
    private static final int LARGE_KEYS = 4;

    private static TestCluster ofOneShard;
    private static TestCluster ofTwoShards;

    private final String stream = TestStreams.newName();
    private TestCluster cluster;
    private EventSql eventSql;

    @BeforeAll
    static void openClusters() {
        ofOneShard = TestCluster.ofShards(1);
        ofTwoShards = TestCluster.ofShards(2);
    }

    @AfterAll
    static void closeClusters() {
        ofOneShard.close();
        ofTwoShards.close();
    }

    private void open(TestCluster opened, StreamSpec spec) {
        cluster = opened;
        eventSql = cluster.open();
        eventSql.createStream(spec);
    }

    private StreamSpec spec() {
        return StreamSpec.of(stream).withPartitions(2).withSegmentSize(100);
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    private static String key(int number) {
        return "key-" + number % KEYS;
    }

    /** Publishes with expected versions, as versions are counted here. */
    private void publish(EventSql publisher, Map<String, List<String>> published, int from, int to) {
        for (int i = from; i < to; i++) {
            List<String> ofKey = published.computeIfAbsent(key(i), key -> new ArrayList<>());
            publisher.publisher().publish(stream, Event.ofText(key(i), "v" + i), ExpectedVersion.of(ofKey.size()));
            ofKey.add("v" + i);
        }
    }

    private static List<String> texts(List<StoredEvent> events) {
        return events.stream().map(StoredEvent::text).toList();
    }

    private void assertRead(EventSql reader, Map<String, List<String>> published) {
        published.forEach((key, values) -> {
            KeyEvents found = reader.readKey(stream, key);
            assertThat(texts(found.events())).as(key).isEqualTo(values);
            assertThat(found.version()).as(key).isEqualTo(values.size());
            assertThat(reader.keyVersion(stream, key)).as(key).isEqualTo(values.size());
        });
    }

    /** What triggers compute in the database must be what publishers compute. */
    @Test
    void keySlot_randomKeys_isThatOfPublishers() throws SQLException {
        open(ofOneShard, spec().withKeyVersions());
        Random random = Seeds.random("VersionsOverGrowthIT.keySlot");
        List<String> keys = new ArrayList<>(List.of("", "a", "foobar", "ключ", "鍵", "🔑"));
        while (keys.size() < 500) {
            byte[] bytes = new byte[random.nextInt(40)];
            random.nextBytes(bytes);
            keys.add(new String(bytes, StandardCharsets.UTF_8).replace("\0", ""));
        }
        for (int partitions : new int[] {1, 2, 3, 10, 37, 1_000}) {
            int slots = PartitionMap.first(1, partitions).slots().length;
            List<String> expected = keys.stream()
                    .map(key -> Integer.toString(PartitionMap.slot(KeyHash.of(key), partitions)))
                    .toList();
            assertThat(Sql.query(
                            cluster.dataSources().getFirst(),
                            "SELECT eventsql.key_slot_v1(u.key, ?) FROM unnest(?::text[]) WITH ORDINALITY AS u (key, n)"
                                    + " ORDER BY u.n",
                            slots,
                            keys.toArray(new String[0])))
                    .isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @EnumSource
    void grow_severalTimes_versionsAndEventsOfKeysContinue(Storage storage) {
        open(ofTwoShards, spec().withStorage(storage).withKeyIndex());
        EventSql other = cluster.open(); // has the first map until it finds out
        Map<String, List<String>> published = new HashMap<>();
        publish(eventSql, published, 0, 80);
        assertRead(other, published);
        eventSql.grow(stream, 3);
        publish(eventSql, published, 80, 160);
        assertRead(other, published);
        eventSql.grow(stream, 8);
        publish(eventSql, published, 160, 240);
        assertRead(other, published);
        publish(other, published, 240, 280);
        assertRead(eventSql, published);
        for (int i = 0; i < KEYS; i++) {
            String key = key(i);
            int version = published.get(key).size();
            assertThatExceptionOfType(VersionConflictException.class)
                    .isThrownBy(() ->
                            other.publisher().publish(stream, Event.ofText(key, "conflict"), ExpectedVersion.NONE))
                    .satisfies(e -> assertThat(e.actualVersion()).isEqualTo(version));
        }
        for (int i = 0; i < 20; i++) { // keys whose first event comes after the growth
            other.publisher().publish(stream, Event.ofText("new-" + i, "1"), ExpectedVersion.NONE);
            eventSql.publisher().publish(stream, Event.ofText("new-" + i, "2"), ExpectedVersion.of(1));
            assertThat(texts(other.readKey(stream, "new-" + i).events())).containsExactly("1", "2");
        }
    }

    @ParameterizedTest
    @EnumSource
    void readKey_inPagesOverPartitions_continuesWhereThePageEnded(Storage storage) {
        open(ofOneShard, spec().withStorage(storage).withKeyIndex());
        Map<String, List<String>> published = new HashMap<>();
        publish(eventSql, published, 0, 120);
        eventSql.grow(stream, 3);
        publish(eventSql, published, 120, 240);
        eventSql.grow(stream, 8);
        publish(eventSql, published, 240, 360);
        for (int max : new int[] {1, 4, 5}) {
            published.forEach((key, values) -> {
                List<String> read = new ArrayList<>();
                KeyEvents page = eventSql.readKey(stream, key, max);
                read.addAll(texts(page.events()));
                while (page.next().isPresent()) {
                    assertThat(page.events()).hasSize(max);
                    page = eventSql.readKey(stream, key, page.next().orElseThrow(), max);
                    read.addAll(texts(page.events()));
                }
                assertThat(read).isEqualTo(values);
            });
        }
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.readKey(stream, "key-0", new EventPosition("other", 0, 0, 0), 1))
                .satisfies(e -> assertThat(e.field()).isEqualTo("from"));
    }

    /** Each page ends with the last event that the key has in a partition. */
    @ParameterizedTest
    @EnumSource
    void readKey_largeEventsOverGrowth_pagesContinue(Storage storage) {
        open(ofOneShard, spec().withStorage(storage).withKeyIndex());
        publishLarge(0);
        eventSql.grow(stream, 3);
        publishLarge(2);
        eventSql.grow(stream, 8);
        publishLarge(4);
        long moves = 0;
        for (int i = 0; i < LARGE_KEYS; i++) {
            List<StoredEvent> read = new ArrayList<>();
            KeyEvents page = eventSql.readKey(stream, key(i));
            read.addAll(page.events());
            while (page.next().isPresent()) {
                assertThat(page.events()).hasSize(2);
                page = eventSql.readKey(stream, key(i), page.next().orElseThrow(), EventSql.KEY_EVENTS_MAX);
                read.addAll(page.events());
            }
            assertThat(read)
                    .extracting(event -> event.headers().get("n"))
                    .as(key(i))
                    .containsExactly("0", "1", "2", "3", "4", "5");
            moves += read.stream()
                            .map(event -> event.position().partition())
                            .distinct()
                            .count()
                    - 1;
        }
        assertThat(moves).isPositive();
    }

    /** Publishes two events of each key, which fill a page. */
    private void publishLarge(int from) {
        String value = "x".repeat(2 << 20);
        for (int n = from; n < from + 2; n++) {
            for (int i = 0; i < LARGE_KEYS; i++) {
                eventSql.publisher().publish(stream, Event.ofText(key(i), value).withHeader("n", "" + n));
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void loadAggregate_snapshotFromBeforeTheGrowth_hasTheEventsSince(Storage storage) {
        open(ofOneShard, spec().withStorage(storage).withKeyIndex());
        String snapshots = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(snapshots).withPartitions(2).withCompaction(Compaction.DEFAULT));
        Map<String, List<String>> published = new HashMap<>();
        publish(eventSql, published, 0, 120);
        for (int i = 0; i < KEYS; i++) {
            Aggregate loaded = eventSql.loadAggregate(stream, key(i), snapshots);
            eventSql.publisher().publish(snapshots, loaded.newSnapshot(new byte[0]));
        }
        eventSql.grow(stream, 8);
        publish(eventSql, published, 120, 200);
        for (int i = 0; i < KEYS; i++) {
            Aggregate loaded = eventSql.loadAggregate(stream, key(i), snapshots);
            assertThat(texts(loaded.events())).isEqualTo(published.get(key(i)).subList(3, 5));
            assertThat(loaded.version()).isEqualTo(5);
            eventSql.publisher().publish(snapshots, loaded.newSnapshot(new byte[0]));
            assertThat(eventSql.loadAggregate(stream, key(i), snapshots).events())
                    .isEmpty();
        }
    }

    /** Writers of two processes compete without a pause while the stream grows, and with transactions for the same keys. */
    @ParameterizedTest
    @EnumSource
    void grow_whileWritersCompete_versionsHaveNoGap(Storage storage) throws Exception {
        open(ofOneShard, spec().withStorage(storage).withKeyVersions());
        CompetingWriters writers = new CompetingWriters(stream, 10, 8);
        writers.start(List.of(eventSql, cluster.open()), Seeds.random("VersionsOverGrowthIT.compete"));
        for (int partitions : new int[] {3, 4, 8}) {
            long before = writers.successes();
            eventSql.grow(stream, partitions);
            await().atMost(Duration.ofSeconds(60)).until(() -> writers.successes() >= before + 50);
        }
        writers.stop();
        List<Ledger.Stored> stored = Ledger.read(stream, cluster.dataSources());
        Ledger.assertGapless(stored);
        assertThat(stored).anyMatch(event -> event.partition() >= 4);
        writers.verify(eventSql, stored);
    }

    /** A transaction that began before the growth commits after it; its process does not know the new map. */
    @Test
    void grow_whileTransactionsPublish_directPublishesWaitForTheirEvents() throws Exception {
        open(ofOneShard, spec().withKeyIndex());
        EventSql other = cluster.open();
        for (int i = 0; i < KEYS; i += 2) {
            other.publisher().publish(stream, Event.ofText(key(i), "0")); // knows the first map
        }
        List<CompletableFuture<EventPosition>> waiting = new ArrayList<>();
        try (Connection transaction = cluster.dataSources().getFirst().getConnection()) {
            transaction.setAutoCommit(false);
            for (int i = 0; i < KEYS; i += 2) {
                other.outbox().publish(transaction, stream, Event.ofText(key(i), "1"), ExpectedVersion.of(1));
            }
            eventSql.grow(stream, 3);
            eventSql.grow(stream, 8);
            for (int i = 0; i < KEYS; i += 2) {
                other.outbox().publish(transaction, stream, Event.ofText(key(i), "2"), ExpectedVersion.of(2));
                eventSql.publisher().publish(stream, Event.ofText(key(i + 1), "1"), ExpectedVersion.NONE);
            }
            for (int i = 0; i < KEYS; i += 2) {
                waiting.add(
                        eventSql.publisher().publishAsync(stream, Event.ofText(key(i), "3"), ExpectedVersion.of(3)));
            }
            assertThat(waiting).noneMatch(CompletableFuture::isDone);
            transaction.commit();
        }
        waiting.forEach(CompletableFuture::join);
        for (int i = 0; i < KEYS; i += 2) {
            KeyEvents found = eventSql.readKey(stream, key(i));
            assertThat(texts(found.events())).containsExactly("0", "1", "2", "3");
            assertThat(found.version()).isEqualTo(4);
            assertThat(eventSql.keyVersion(stream, key(i + 1))).isEqualTo(1);
        }
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.key_reservation")).isZero();
        assertThat(cluster.sum("SELECT count(*) - count(DISTINCT key) FROM eventsql.key_version v"
                        + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = '" + stream + "'"))
                .as("each key is counted in one row")
                .isZero();
    }
}
