package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.BlockedRelays;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;

/** The contract of what is published inside transactions and committed, for any kind of outbox. Each test has a stream of its own. */
@Timeout(120)
@TestInstance(Lifecycle.PER_CLASS)
abstract class OutboxContract {
    private TestCluster cluster;
    DataSource database;
    EventSql eventSql;
    Outbox outbox;
    private int streams;
    String stream;

    /** Creates the shards. */
    abstract TestCluster newCluster();

    /** Returns the database to publish from. */
    abstract DataSource outboxOf(TestCluster newCluster);

    /** Returns whether the database to publish from is a shard. */
    abstract boolean isShard();

    void closeOutbox() {}

    @BeforeAll
    void open() throws SQLException {
        cluster = newCluster();
        database = outboxOf(cluster);
        eventSql = newInstance();
        outbox = eventSql.outbox();
        Sql.execute(database, "CREATE TABLE bill (name text PRIMARY KEY)");
    }

    @BeforeEach
    void createStream() throws SQLException {
        await().until(() -> outbox.backlogs().stream().allMatch(backlog -> backlog.events() == 0));
        stream = "orders" + ++streams;
        eventSql.createStream(TestStreams.of(stream).withPartitions(2));
        Sql.execute(database, "TRUNCATE bill");
    }

    private EventSql newInstance() {
        return EventSql.builder(cluster.dataSources())
                .outbox(isShard() ? new DataSource[0] : new DataSource[] {database})
                .build();
    }

    @AfterAll
    void close() {
        eventSql.close();
        cluster.close();
        closeOutbox();
    }

    final Connection begin() throws SQLException {
        Connection connection = database.getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    final void publishCommitted(String... texts) throws SQLException {
        try (Connection transaction = begin()) {
            for (String text : texts) {
                outbox.publish(transaction, stream, Event.ofText("key", text));
            }
            transaction.commit();
        }
    }

    private List<String> stored() throws SQLException {
        List<String> stored = new ArrayList<>();
        for (DataSource shard : cluster.dataSources()) {
            stored.addAll(Sql.query(
                    shard,
                    "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream
                            + " ORDER BY partition, event_offset"));
        }
        return stored;
    }

    final void awaitStored(String... expected) {
        await().atMost(Duration.ofSeconds(120))
                .pollInterval(Duration.ofMillis(10))
                .untilAsserted(() -> assertThat(stored()).containsExactlyInAnyOrder(expected));
    }

    @Test
    void publish_committed_isHandledOnceWithKeyValueAndHeaders() throws SQLException {
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), handled::add)) {
            byte[] value = {0, 1, -1, 127, -128};
            Event event = new Event("k\u00e4y \ud83d\ude00", value, Map.of("type", "paid \"\\\n", "b", ""));
            try (Connection transaction = begin()) {
                outbox.publish(transaction, stream, event);
                outbox.publish(transaction, stream, Event.of(new byte[0]));
                transaction.commit();
            }
            handled.awaitSize(2);
            StoredEvent found = handled.events().stream()
                    .filter(e -> e.key() != null)
                    .findFirst()
                    .orElseThrow();
            assertThat(found.key()).isEqualTo(event.key());
            assertThat(found.value()).isEqualTo(value);
            assertThat(found.headers()).isEqualTo(event.headers());
            handled.assertOnceAndInOrder();
        }
        assertStoredSize(2);
    }

    @Test
    void publish_tombstones_areDeliveredAsTombstonesInOrder() throws SQLException {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            String key = "key" + i % 5;
            events.add(
                    i % 10 < 5
                            ? Event.of(key, new byte[i % 3])
                            : Event.tombstone(key).withHeader("n", "" + i));
        }
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), handled::add)) {
            try (Connection transaction = begin()) {
                for (Event event : events) {
                    outbox.publish(transaction, stream, event);
                }
                outbox.publishAll(transaction, stream, events);
                transaction.commit();
            }
            handled.awaitSize(2 * events.size()).assertOnceAndInOrder();
        }
        for (int i = 0; i < 5; i++) {
            String key = "key" + i;
            List<Event> ofKey = events.stream().filter(e -> key.equals(e.key())).toList();
            List<Event> expected = new ArrayList<>(ofKey);
            expected.addAll(ofKey);
            assertThat(handled.events().stream()
                            .filter(e -> key.equals(e.key()))
                            .map(e -> new Event(e.key(), e.value(), e.headers(), e.isTombstone())))
                    .containsExactlyElementsOf(expected);
        }
    }

    /** A page ends with the event that brings its values to the limit: one without a value must not be left out of it. */
    @Test
    void publish_onlyTombstonesWithSql_areDelivered() throws SQLException {
        String insert = "INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                + " SELECT r.last_value, '" + stream + "', %s, NULL, 0 FROM eventsql.outbox_ring r";
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), handled::add)) {
            Sql.execute(database, insert.formatted("'k1'"), insert.formatted("'k2'"));
            handled.awaitSize(2);
        }
        assertThat(handled.events()).allMatch(StoredEvent::isTombstone);
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> Sql.execute(database, insert.formatted("NULL")))
                .withMessageContaining("outbox_tombstone_key");
    }

    private void assertStoredSize(int size) throws SQLException {
        long stored = cluster.sum("SELECT count(*) FROM eventsql.events_" + stream);
        assertThat(stored).isEqualTo(size);
    }

    @Test
    void publish_notYetCommitted_isDeliveredAfterCommit() throws SQLException {
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("key", "late"));
            publishCommitted("early");
            awaitStored("early");
            transaction.commit();
        }
        outbox.committed();
        awaitStored("early", "late");
    }

    /** The lowest id is committed last: no event is skipped because of its id. */
    @Test
    void publish_transactionsCommitInReverseOrder_allEventsArrive() throws SQLException {
        List<Connection> transactions = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Connection transaction = begin();
            transactions.add(transaction);
            outbox.publish(transaction, stream, Event.ofText("key" + i, "event " + i));
        }
        List<String> committed = new ArrayList<>();
        for (int i = 7; i >= 0; i--) {
            try (Connection transaction = transactions.get(i)) {
                transaction.commit();
                outbox.committed();
            }
            committed.add("event " + i);
            awaitStored(committed.toArray(String[]::new));
        }
    }

    @Test
    void publishAll_withAndWithoutKeys_keepsCallOrder() throws SQLException {
        int size = 200;
        try (Connection transaction = begin()) {
            for (int call = 0; call < 3; call++) {
                int first = call * size;
                outbox.publishAll(
                        transaction,
                        stream,
                        IntStream.range(first, first + size)
                                .mapToObj(i -> i % 3 == 0
                                        ? Event.ofText("-/" + i)
                                        : Event.ofText("key" + i % 7, "key" + i % 7 + "/" + i))
                                .toList());
            }
            transaction.commit();
        }
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(stored()).hasSize(3 * size));
        assertOrderOfEachKey();
        if (isShard()) {
            assertThat(Sql.queryLong(
                            database,
                            "SELECT count(DISTINCT partition) FROM eventsql.events_" + stream + " WHERE key IS NULL"))
                    .as("partitions of events without a key in the outbox's own shard")
                    .isOne();
        }
    }

    private void assertOrderOfEachKey() throws SQLException {
        for (DataSource shard : cluster.dataSources()) {
            assertThat(Sql.query(
                            shard,
                            "SELECT name || ' ' || number FROM (SELECT event_offset, split_part(v, '/', 1) AS name,"
                                    + " split_part(v, '/', 2)::int AS number, lag(split_part(v, '/', 2)::int) OVER"
                                    + " (PARTITION BY partition, split_part(v, '/', 1) ORDER BY event_offset) AS before"
                                    + " FROM eventsql.events_" + stream + ", convert_from(value, 'UTF8') AS v) e"
                                    + " WHERE before >= number"))
                    .isEmpty();
        }
    }

    /**
     * Goal: with several writers, the application's rows and the events agree, and each key is in the order of its
     * transactions.
     *
     * <p>Method: each writer has its own keys and rolls back some of its transactions, while two instances relay.
     */
    @Test
    void publish_fromManyThreadsWithTwoInstances_matchesApplicationRows() throws Exception {
        int writers = 4;
        int transactionsOfEach = 40;
        try (EventSql other = newInstance();
                ExecutorService threads = Executors.newFixedThreadPool(writers)) {
            CountDownLatch start = new CountDownLatch(1);
            List<Future<?>> ends = new ArrayList<>();
            for (int w = 0; w < writers; w++) {
                int writer = w;
                Outbox used = w % 2 == 0 ? outbox : other.outbox();
                ends.add(threads.submit(() -> {
                    start.await();
                    for (int i = 0; i < transactionsOfEach; i++) {
                        try (Connection transaction = begin()) {
                            String name = "w" + writer + "k" + i % 3 + "/" + i;
                            Sql.query(transaction, "INSERT INTO bill VALUES (?) RETURNING name", name);
                            used.publish(transaction, stream, Event.ofText(name.substring(0, name.indexOf('/')), name));
                            if (i % 5 == 4) {
                                transaction.rollback();
                            } else {
                                transaction.commit();
                            }
                        }
                    }
                    return null;
                }));
            }
            start.countDown();
            for (Future<?> end : ends) {
                end.get(120, TimeUnit.SECONDS);
            }
            List<String> bills = Sql.query(database, "SELECT name FROM bill");
            assertThat(bills).hasSize(writers * transactionsOfEach * 4 / 5);
            awaitStored(bills.toArray(String[]::new));
            assertOrderOfEachKey();
        }
    }

    @Test
    void backlogs_relayIsBlocked_showEventsAndTheirAge() throws SQLException {
        assertThat(eventSql.outbox().backlogs())
                .hasSize(cluster.shards() + (isShard() ? 0 : 1))
                .allMatch(b -> b.events() == 0
                        && b.refusedEvents() == 0
                        && b.oldestAge().isZero());
        try (BlockedRelays ignored = BlockedRelays.of(database)) {
            publishCommitted("one", "two", "three");
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(backlog().oldestAge()).isPositive());
            assertThat(backlog().events()).isEqualTo(3);
        }
        awaitStored("one", "two", "three");
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(backlog().events()).isZero());
        assertThat(backlog().oldestAge()).isZero();
    }

    private OutboxBacklog backlog() {
        return outbox.backlogs().stream()
                .filter(b -> b.database().equals(database))
                .findFirst()
                .orElseThrow();
    }
}
