package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Publishing in transactions to a stream that counts the events of keys, next to direct publishes of the same keys. */
@Timeout(120)
class VersionsInTransactionsIT {
    private static TestCluster shared;

    private final String stream = TestStreams.newName();
    private TestCluster cluster;
    private EventSql eventSql;
    private Outbox outbox;

    @BeforeAll
    static void openShared() {
        shared = TestCluster.ofShards(1);
    }

    @AfterAll
    static void closeShared() {
        shared.close();
    }

    private void open() {
        open(shared);
    }

    private void open(TestCluster opened) {
        cluster = opened;
        eventSql = cluster.open();
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(1_000).withKeyIndex());
        outbox = eventSql.outbox();
    }

    @AfterEach
    void close() {
        if (cluster == shared) {
            cluster.closeInstances();
        } else {
            cluster.close();
        }
    }

    private Connection begin() throws SQLException {
        Connection connection = cluster.dataSources().getFirst().getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    private List<String> texts(String key) {
        return eventSql.readKey(stream, key).events().stream()
                .map(StoredEvent::text)
                .toList();
    }

    private void awaitVersion(String key, long version) {
        await().atMost(Duration.ofSeconds(120)).until(() -> eventSql.keyVersion(stream, key) == version);
    }

    @Test
    void publish_inTransaction_storesOnlyIfKeyHasVersion() throws SQLException {
        open();
        eventSql.publisher().publish(stream, Event.ofText("a", "1"));
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("a", "2"), ExpectedVersion.of(1));
            outbox.publishAll(
                    transaction,
                    stream,
                    List.of(Event.ofText("a", "3"), Event.ofText("a", "4")),
                    ExpectedVersion.of(2));
            assertThatExceptionOfType(VersionConflictException.class)
                    .isThrownBy(
                            () -> outbox.publish(transaction, stream, Event.ofText("a", "x"), ExpectedVersion.of(1)))
                    .satisfies(e -> assertThat(e.actualVersion()).isEqualTo(4));
            outbox.publish(transaction, stream, Event.ofText("b", "1"), ExpectedVersion.NONE);
            outbox.publish(transaction, stream, Event.ofText("b", "2")); // counted, too
            transaction.commit();
        }
        awaitVersion("a", 4);
        awaitVersion("b", 2);
        assertThat(texts("a")).containsExactly("1", "2", "3", "4");
        assertThat(texts("b")).containsExactly("1", "2");
        assertThat(eventSql.publisher()
                        .publish(stream, Event.ofText("a", "5"), ExpectedVersion.of(4))
                        .offset())
                .isPositive();
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.key_reservation")).isZero();
    }

    @Test
    void schedule_dueWhileTransactionPublishesForTheKey_isAppendedAfterItsEvents() throws SQLException {
        open();
        try (CapturedLog log = CapturedLog.ofRelay();
                Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("a", "1"), ExpectedVersion.NONE);
            eventSql.publisher().schedule(stream, Event.ofText("a", "2"), Instant.EPOCH);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> eventSql.scheduleBacklog("shard0").overdue().toMillis() > 200);
            transaction.commit();

            awaitVersion("a", 2);

            assertThat(texts("a")).containsExactly("1", "2");
            assertThat(log.lines("WARN")).isEmpty();
        }
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.key_reservation")).isZero();
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.outbox_refused")).isZero();
    }

    @Test
    void publish_rolledBack_leavesVersionAsItWas() throws SQLException {
        open();
        eventSql.publisher().publish(stream, Event.ofText("a", "1"));
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("a", "2"), ExpectedVersion.of(1));
            outbox.publish(transaction, stream, Event.ofText("new", "1"), ExpectedVersion.NONE);
            transaction.rollback();
        }
        eventSql.publisher().publish(stream, Event.ofText("a", "3"), ExpectedVersion.of(1));
        eventSql.publisher().publish(stream, Event.ofText("new", "1"), ExpectedVersion.NONE);
        assertThat(texts("a")).containsExactly("1", "3");
    }

    /** The direct publishes of the key wait, those of other keys in its partition do not. */
    @Test
    void publish_transactionOpen_directPublishOfKeyNeverOvertakes() throws Exception {
        open();
        eventSql.publisher().publish(stream, Event.ofText("a", "1"));
        List<CompletableFuture<EventPosition>> waiting = new ArrayList<>();
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("a", "2"), ExpectedVersion.of(1));
            waiting.add(eventSql.publisher().publishAsync(stream, Event.ofText("a", "3")));
            CompletableFuture<EventPosition> conflicting =
                    eventSql.publisher().publishAsync(stream, Event.ofText("a", "x"), ExpectedVersion.of(1));
            for (int i = 0; i < 20; i++) {
                eventSql.publisher().publish(stream, Event.ofText("other" + i, "1"), ExpectedVersion.NONE);
            }
            assertThat(waiting.getFirst()).isNotDone();
            assertThat(conflicting).isNotDone();
            transaction.commit();
            assertThat(conflicting)
                    .failsWithin(Duration.ofSeconds(20))
                    .withThrowableThat()
                    .havingCause()
                    .isInstanceOf(VersionConflictException.class);
        }
        waiting.getFirst().join();
        assertThat(texts("a")).containsExactly("1", "2", "3");
        assertThat(eventSql.keyVersion(stream, "a")).isEqualTo(3);
    }

    /** A forgotten transaction delays the publishes of its keys, and no others: not those over all partitions, either. */
    @Test
    void publish_transactionsHaveKeysOfAllPartitions_otherKeysAreStored() throws Exception {
        open();
        String other = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(other).withPartitions(1));
        List<String> reserved = keysOfDifferentPartitions();
        List<CompletableFuture<EventPosition>> waiting = new ArrayList<>();
        try (Connection transaction = begin()) {
            for (String key : reserved) {
                outbox.publish(transaction, stream, Event.ofText(key, "2"), ExpectedVersion.of(1));
            }
            for (int i = 3; i < 6; i++) {
                for (String key : reserved) {
                    waiting.add(eventSql.publisher().publishAsync(stream, Event.ofText(key, "" + i)));
                }
                eventSql.publisher().publish(other, Event.ofText("a", "" + i)); // the waiting ones were tried before
            }
            List<Event> wide = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                wide.add(Event.ofText("other" + i, "1"));
            }
            assertThat(eventSql.publisher().publishAllAsync(stream, wide)).succeedsWithin(Duration.ofSeconds(15));
            assertThat(eventSql.publisher().publishAsync(stream, Event.ofText("other0", "2")))
                    .succeedsWithin(Duration.ofSeconds(15));
            assertThat(waiting).noneMatch(CompletableFuture::isDone);
            transaction.commit();
        }
        for (CompletableFuture<EventPosition> call : waiting) {
            call.join();
        }
        for (String key : reserved) {
            assertThat(texts(key)).containsExactly("1", "2", "3", "4", "5");
        }
        assertThat(texts("other0")).containsExactly("1", "2");
    }

    /** Publishes keys until each partition has one, and returns these. */
    private List<String> keysOfDifferentPartitions() {
        Map<Integer, String> keys = new HashMap<>();
        for (int i = 0; keys.size() < 2; i++) {
            EventPosition position = eventSql.publisher().publish(stream, Event.ofText("k" + i, "1"));
            keys.putIfAbsent(position.partition(), "k" + i);
        }
        return List.copyOf(keys.values());
    }

    @Test
    void publish_keyOfOtherDatabase_isRefusedWithExpectedVersionOnly() throws SQLException {
        open(TestCluster.ofShards(2));
        int refused = 0;
        for (int i = 0; i < 12; i++) {
            String key = "k" + i;
            try (Connection transaction = begin()) {
                try {
                    outbox.publish(transaction, stream, Event.ofText(key, "1"), ExpectedVersion.NONE);
                } catch (InvalidInputException e) {
                    assertThat(e.field()).isEqualTo("transaction");
                    refused++;
                    outbox.publish(transaction, stream, Event.ofText(key, "1")); // the transaction is usable
                }
                transaction.commit();
            }
            awaitVersion(key, 1);
        }
        assertThat(refused).isBetween(1, 11);
    }

    @Test
    void publish_standaloneOutbox_isRefusedWithExpectedVersionOnly() throws SQLException {
        cluster = TestCluster.ofShards(1);
        DataSource standalone = TestCluster.newDatabase();
        try (EventSql other =
                EventSql.builder(cluster.dataSources()).outbox(standalone).build()) {
            other.createStream(StreamSpec.of(stream).withPartitions(2).withKeyVersions());
            try (Connection transaction = standalone.getConnection()) {
                transaction.setAutoCommit(false);
                assertThatExceptionOfType(InvalidInputException.class)
                        .isThrownBy(() -> other.outbox()
                                .publish(transaction, stream, Event.ofText("a", "1"), ExpectedVersion.NONE));
                other.outbox().publish(transaction, stream, Event.ofText("a", "1"));
                transaction.commit();
            }
            await().atMost(Duration.ofSeconds(120)).until(() -> other.keyVersion(stream, "a") == 1);
        }
    }

    /** Each event says the version that it was published with; transactions and direct publishes compete for few keys. */
    @Test
    void publish_competingTransactionsAndDirectPublishes_versionsHaveNoGap() throws Exception {
        open();
        Random random = Seeds.random("VersionsInTransactionsIT");
        AtomicInteger stored = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int writer = 0; writer < 6; writer++) {
            Random own = new Random(random.nextLong());
            boolean isDirect = writer % 2 == 0;
            threads.add(Thread.ofVirtual().start(() -> {
                try {
                    long[] versions = new long[3];
                    for (int i = 0; i < 40; i++) {
                        int key = own.nextInt(3);
                        stored.addAndGet(publish(isDirect, own, key, versions));
                    }
                } catch (Throwable e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).isEmpty();
        await().atMost(Duration.ofSeconds(120))
                .until(() -> cluster.sum("SELECT count(*) FROM eventsql.events_" + stream) == stored.get());
        Map<String, Integer> counts = new HashMap<>();
        for (String row : Sql.query(
                cluster.dataSources().getFirst(),
                "SELECT key || ' ' || convert_from(value, 'UTF8') FROM eventsql.events_" + stream
                        + " ORDER BY partition, event_offset")) {
            String[] words = row.split(" ");
            assertThat(counts.merge(words[0], 1, Integer::sum)).as(row).isEqualTo(Integer.parseInt(words[1]));
        }
        counts.forEach(
                (key, count) -> assertThat(eventSql.keyVersion(stream, key)).isEqualTo((long) count));
    }

    /** Repeats until the publish succeeds or is rolled back; returns how many events will be stored. */
    private int publish(boolean isDirect, Random random, int key, long[] versions) throws SQLException {
        while (true) {
            Event event = Event.ofText("k" + key, "" + (versions[key] + 1));
            try {
                boolean isCommitted = true;
                if (isDirect) {
                    eventSql.publisher().publish(stream, event, ExpectedVersion.of(versions[key]));
                } else {
                    try (Connection transaction = begin()) {
                        outbox.publish(transaction, stream, event, ExpectedVersion.of(versions[key]));
                        isCommitted = random.nextInt(4) > 0;
                        if (isCommitted) {
                            transaction.commit();
                        } else {
                            transaction.rollback();
                        }
                    }
                }
                versions[key] += isCommitted ? 1 : 0;
                return isCommitted ? 1 : 0;
            } catch (VersionConflictException e) {
                versions[key] = e.actualVersion();
            }
        }
    }

    /** The row of a new key is invisible, so it cannot be passed over as that of a known one is. */
    @Test
    void publish_transactionHasTheFirstEventOfAKey_otherKeysOfItsPartitionAreStored() throws Exception {
        open();
        CompletableFuture<EventPosition> direct;
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("new", "1"));
            direct = eventSql.publisher().publishAsync(stream, Event.ofText("new", "2"));
            long startedAt = System.nanoTime();
            List<CompletableFuture<EventPosition>> others = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                others.add(eventSql.publisher().publishAsync(stream, Event.ofText("other" + i, "1")));
            }
            // Before, each of its attempts waited for 2 to 5 s, and nothing of its batch was stored until the
            // transaction ended.
            CompletableFuture.allOf(others.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
            System.out.printf("MEASURED other keys stored in %d ms%n", (System.nanoTime() - startedAt) / 1_000_000);
            assertThat(direct).isNotDone();
            transaction.commit();
        }
        direct.get(60, TimeUnit.SECONDS);
        assertThat(texts("new")).containsExactly("1", "2");
    }

    private void insertUncounted(Connection transaction, String value) throws SQLException {
        Sql.query(
                transaction,
                "INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                        + " SELECT last_value, '" + stream + "', 'a', '" + value
                        + "', 0 FROM eventsql.outbox_ring RETURNING id");
    }

    /** The relay takes it alone, and what follows never arrives before it. */
    @Test
    void outbox_uncountedEventBeforeACountedOne_bothArrive() throws SQLException {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open(settings -> settings.outboxPageEvents(1));
        eventSql.createStream(StreamSpec.of(stream).withPartitions(2).withKeyIndex());
        try (Connection transaction = begin()) {
            insertUncounted(transaction, "1");
            eventSql.outbox().publish(transaction, stream, Event.ofText("a", "2"));
            transaction.commit();
        }
        awaitVersion("a", 2);
        await().untilAsserted(() -> assertThat(texts("a")).containsExactly("1", "2"));
    }

    /** Those that were counted when they were published are appended first, so such a page is taken in parts. */
    @Test
    void outbox_uncountedAndCountedEventsInTurns_arriveInTheirOrder() throws SQLException {
        open();
        String[] expected = new String[20];
        try (Connection transaction = begin()) {
            for (int i = 0; i < expected.length; i++) {
                expected[i] = "" + i;
                if (i % 3 == 0) {
                    insertUncounted(transaction, expected[i]);
                } else {
                    outbox.publish(transaction, stream, Event.ofText("a", "" + i));
                }
            }
            transaction.commit();
        }
        awaitVersion("a", expected.length);
        await().untilAsserted(() -> assertThat(texts("a")).containsExactly(expected));
    }

    /** The events of other keys wait, too, so it must not be silent. */
    @Test
    void schedule_transactionPublishesForTheKeyForLong_isReported() throws SQLException {
        open();
        try (CapturedLog log = CapturedLog.ofRelay();
                Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("a", "1"));
            eventSql.publisher().schedule(stream, Event.ofText("a", "2"), Instant.now());
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(
                            () -> assertThat(log.lines("have waited for 10 s")).hasSize(1));
            transaction.commit();
            await().untilAsserted(() -> assertThat(texts("a")).containsExactly("1", "2"));
        }
    }
}
