package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.BlockedRelays;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The contract of publishing inside a transaction, for any kind of outbox. That an event never arrives is shown by a later
 * one: the relay takes all visible events, so an event that did not arrive before the later one never will. Each test has a stream of
 * its own.
 */
@Timeout(120)
@TestInstance(Lifecycle.PER_CLASS)
abstract class OutboxContract {
    private static final String LAST = "the last";

    private TestCluster cluster;
    private DataSource database;
    EventSql eventSql;
    private Outbox outbox;
    private int streams;
    private String stream;

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
        eventSql.createStream(TestStreams.of(stream).withPartitions(3));
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

    private Connection begin() throws SQLException {
        Connection connection = database.getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    private void publishCommitted(String... texts) throws SQLException {
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

    private void awaitStored(String... expected) {
        await().atMost(Duration.ofSeconds(120))
                .pollInterval(Duration.ofMillis(10))
                .untilAsserted(() -> assertThat(stored()).containsExactlyInAnyOrder(expected));
    }

    /** Publishes one more event of the same key and waits until exactly the expected ones and this one are stored. */
    private void assertStoredBeforeTheLast(String... expected) throws SQLException {
        publishCommitted(LAST);
        String[] all = Arrays.copyOf(expected, expected.length + 1);
        all[expected.length] = LAST;
        awaitStored(all);
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
    void publish_rolledBack_isNeverDelivered() throws SQLException {
        try (Connection transaction = begin()) {
            Sql.query(transaction, "INSERT INTO bill VALUES ('a') RETURNING name");
            outbox.publish(transaction, stream, Event.ofText("key", "rolled back"));
            outbox.committed(); // untrue, but harmless
            transaction.rollback();
        }
        assertStoredBeforeTheLast();
        assertThat(Sql.query(database, "SELECT name FROM bill")).isEmpty();
    }

    @Test
    void publish_connectionClosedWithoutCommit_isNeverDelivered() throws SQLException {
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("key", "forgotten"));
        }
        assertStoredBeforeTheLast();
    }

    @Test
    void publish_rolledBackToSavepoint_deliversOnlyRemainingEvents() throws SQLException {
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("key", "before"));
            Savepoint savepoint = transaction.setSavepoint();
            outbox.publish(transaction, stream, Event.ofText("key", "undone"));
            outbox.publishAll(
                    transaction, stream, List.of(Event.ofText("key", "undone too"), Event.ofText("undone 3")));
            transaction.rollback(savepoint);
            outbox.publish(transaction, stream, Event.ofText("key", "after"));
            transaction.commit();
        }
        awaitStored("before", "after");
        assertStoredBeforeTheLast("before", "after");
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
        for (int i = 0; i < 20; i++) {
            Connection transaction = begin();
            transactions.add(transaction);
            outbox.publish(transaction, stream, Event.ofText("key" + i, "event " + i));
        }
        List<String> committed = new ArrayList<>();
        for (int i = 19; i >= 0; i--) {
            try (Connection transaction = transactions.get(i)) {
                transaction.commit();
                outbox.committed();
            }
            committed.add("event " + i);
            awaitStored(committed.toArray(String[]::new));
        }
    }

    @ParameterizedTest
    @ValueSource(
            ints = {
                Connection.TRANSACTION_READ_COMMITTED,
                Connection.TRANSACTION_REPEATABLE_READ,
                Connection.TRANSACTION_SERIALIZABLE
            })
    void publish_anyIsolationLevel_isDelivered(int level) throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setTransactionIsolation(level);
            transaction.setAutoCommit(false);
            outbox.publish(transaction, stream, Event.ofText("key", "one"));
            outbox.publishAll(transaction, stream, List.of(Event.ofText("key", "two"), Event.ofText("key", "three")));
            assertThat(transaction.getTransactionIsolation()).isEqualTo(level);
            assertThat(transaction.getAutoCommit()).isFalse();
            transaction.commit();
        }
        awaitStored("one", "two", "three");
    }

    @Test
    void publish_withJooq_followsOuterAndNestedTransactions() {
        DSLContext dsl = DSL.using(database, SQLDialect.POSTGRES);
        dsl.transaction(trx -> {
            outbox.publish(trx, stream, Event.ofText("key", "one"));
            trx.dsl().execute("INSERT INTO bill VALUES ('one')");
            outbox.publishAll(trx.dsl(), stream, List.of(Event.ofText("key", "two")));
            outbox.publishAll(trx, stream, List.of(Event.ofText("key", "three")));
            assertThatExceptionOfType(IllegalStateException.class)
                    .isThrownBy(() -> trx.dsl().transaction(nested -> {
                        outbox.publish(nested.dsl(), stream, Event.ofText("key", "undone"));
                        throw new IllegalStateException("rolls back to the savepoint");
                    }));
        });
        assertThatExceptionOfType(IllegalStateException.class)
                .isThrownBy(() -> dsl.transaction(trx -> {
                    outbox.publish(trx, stream, Event.ofText("key", "undone"));
                    throw new IllegalStateException("rolls back");
                }));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> outbox.publish(dsl, stream, Event.ofText("key", "outside of a transaction")))
                .withMessageStartingWith("transaction ");
        awaitStored("one", "two", "three");
    }

    @Test
    void publish_inAutocommitMode_isRejectedNamingIt() throws SQLException {
        try (Connection connection = database.getConnection()) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publish(connection, stream, Event.ofText("key", "x")))
                    .withMessageContaining("autocommit")
                    .satisfies(e -> assertThat(e.field()).isEqualTo("transaction"));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(connection, stream, List.of()));
        }
        assertStoredBeforeTheLast();
    }

    @Test
    void publish_invalidInput_isRejectedAndTransactionContinues() throws SQLException {
        Map<String, Event> wrong = Map.of(
                "event.value", Event.of(new byte[Settings.DEFAULT_MAX_EVENT_BYTES + 1]),
                "event.key", Event.ofText("", "x"),
                "event.headers", Event.ofText("x").withHeader("", "x"),
                "event.headers[a]", Event.ofText("x").withHeader("a", "\u0000"));
        try (Connection transaction = begin()) {
            wrong.forEach((field, event) -> {
                assertThatExceptionOfType(InvalidInputException.class)
                        .isThrownBy(() -> outbox.publish(transaction, stream, event))
                        .satisfies(e -> assertThat(e.field()).isEqualTo(field));
                assertThatExceptionOfType(InvalidInputException.class)
                        .isThrownBy(() -> outbox.publishAll(transaction, stream, List.of(Event.ofText("good"), event)))
                        .satisfies(e -> assertThat(e.field()).isEqualTo(field));
            });
            for (String unknown : List.of("unknown", "", "Not A Name", "x'; DROP TABLE eventsql.outbox; --")) {
                assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(() -> outbox.publish(transaction, unknown, Event.ofText("x")));
            }
            List<Event> tooMany = Collections.nCopies(Settings.DEFAULT_MAX_BATCH_EVENTS + 1, Event.ofText("x"));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(transaction, stream, tooMany))
                    .withMessageContaining("settings.maxBatchEvents");
            List<Event> tooLarge = Collections.nCopies(3, Event.of(new byte[3 << 20]));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(transaction, stream, tooLarge))
                    .withMessageContaining("settings.maxBatchBytes");
            outbox.publishAll(transaction, stream, List.of());
            outbox.publish(transaction, stream, Event.ofText("key", "good"));
            transaction.commit();
        }
        assertStoredBeforeTheLast("good");
    }

    @Test
    void publish_transactionHasFailed_errorSaysSo() throws SQLException {
        try (Connection transaction = begin()) {
            assertThatExceptionOfType(SQLException.class).isThrownBy(() -> Sql.query(transaction, "SELECT 1/0"));
            assertThatExceptionOfType(EventSqlException.class)
                    .isThrownBy(() -> outbox.publish(transaction, stream, Event.ofText("x")))
                    .withMessageContaining("cannot be committed")
                    .withCauseInstanceOf(SQLException.class);
        }
    }

    @Test
    void publish_databaseWithoutOutbox_errorNamesBuilderOption() throws SQLException {
        try (Connection transaction = TestCluster.newDatabase().getConnection()) {
            transaction.setAutoCommit(false);
            assertThatExceptionOfType(EventSqlException.class)
                    .isThrownBy(() -> outbox.publish(transaction, stream, Event.ofText("x")))
                    .withMessageContaining("EventSqlBuilder.outbox");
        }
    }

    @Test
    void publishAll_withAndWithoutKeys_keepsCallOrder() throws SQLException {
        int size = 500;
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
        int writers = 6;
        int transactionsOfEach = 60;
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
