package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventFailedException;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Transactional handlers: their writes are committed together with the offset. */
class TransactionalHandlerIT extends ConsumerFixture {
    @BeforeAll
    void createTable() throws SQLException {
        // No primary key, so that a duplicate effect is visible.
        cluster.execute("CREATE TABLE effect (stream text, text text, at bigint GENERATED ALWAYS AS IDENTITY)");
    }

    private static void write(Connection connection, StoredEvent event) throws SQLException {
        try (PreparedStatement insert =
                connection.prepareStatement("INSERT INTO effect (stream, text) VALUES (?, ?)")) {
            insert.setString(1, event.stream());
            insert.setString(2, event.text());
            insert.execute();
        }
    }

    private List<String> effects(String stream) throws SQLException {
        return Sql.query(
                cluster.dataSources().getFirst(), "SELECT text FROM effect WHERE stream = ? ORDER BY at", stream);
    }

    @Test
    void handler_failsAfterWriting_effectsAreCommittedOnce() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 30, 10);
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        try (Subscription ignored = eventSql.subscribeTransactional(consumer(stream), (event, connection) -> {
            write(connection, event);
            tried.add(event.text());
            if (tried.size() % 3 == 0) {
                throw new IllegalStateException("after the write");
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).hasSizeGreaterThan(30);
        assertThat(effects(stream)).containsExactlyElementsOf(texts(0, 30));
    }

    @Test
    void handler_throwsErrorAfterWriting_effectsAreCommittedOnce() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        try (Subscription ignored = eventSql.subscribeTransactional(consumer(stream), (event, connection) -> {
            write(connection, event);
            tried.add(event.text());
            if (tried.size() == 2) {
                throw new AssertionError("after the write");
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).containsExactly("0", "1", "1", "2");
        assertThat(effects(stream)).containsExactlyElementsOf(texts(0, 3));
    }

    @Test
    void batch_oneEventFails_othersTakeEffectOnce() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 30, 10);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = eventSql.subscribeTransactionalBatch(spec, (events, connection) -> {
            for (StoredEvent event : events) {
                write(connection, event);
                if (event.text().equals("7")) {
                    throw new EventFailedException(event, new IllegalStateException("no"));
                }
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream))
                .containsExactlyElementsOf(
                        texts(0, 30).stream().filter(t -> !t.equals("7")).toList());
        assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).hasSize(1);
    }

    @Test
    void batch_eventBeforeTheFailedOneIsParked_laterEventsOfItsKeyAreParkedToo() throws SQLException {
        String stream = newStream(1);
        publishKeys(stream, "a", "b", "a", "c");
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        AtomicBoolean hasFailed = new AtomicBoolean();
        try (Subscription ignored = eventSql.subscribeTransactionalBatch(spec, (events, connection) -> {
            for (StoredEvent event : events) { // before anything is written, as where arguments are read first
                if (event.text().equals("b1") && !hasFailed.getAndSet(true)) {
                    throw new EventFailedException(event, new IllegalStateException("for a moment"));
                }
            }
            for (StoredEvent event : events) {
                if (event.text().equals("a1")) {
                    throw new IllegalStateException("always");
                }
                write(connection, event);
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactly("b1", "c1");
        assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                .extracting(parked -> parked.event().text())
                .containsExactly("a1", "a2");
    }

    /** What a handler calls on its connection. */
    private interface ConnectionCall {
        void on(Connection connection) throws SQLException;
    }

    @Test
    void connection_callEndsTransaction_isRejected() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        Map<String, ConnectionCall> calls = Map.of(
                "commit", connection -> connection.commit(),
                "rollback", connection -> connection.rollback(),
                "close", connection -> connection.close(),
                "setAutoCommit", connection -> connection.setAutoCommit(true),
                "setTransactionIsolation",
                        connection -> connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE));
        Map<String, String> rejected = new ConcurrentHashMap<>();
        try (Subscription ignored = eventSql.subscribeTransactional(consumer(stream), (event, connection) -> {
            calls.forEach((name, call) -> {
                try {
                    call.on(connection);
                } catch (SQLException e) {
                    rejected.put(name, e.getMessage());
                }
            });
            var savepoint = connection.setSavepoint();
            write(connection, event);
            connection.rollback(savepoint); // a handler may roll back to a savepoint
            write(connection, event);
        })) {
            awaitLag(stream, 0);
        }
        assertThat(rejected)
                .hasSameSizeAs(calls)
                .allSatisfy((name, message) -> assertThat(message).contains("must not call " + name));
        assertThat(effects(stream)).containsExactly("0");
    }

    @Test
    void handler_executesCommit_failsTheEvent() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = eventSql.subscribeTransactional(spec, (event, connection) -> {
            try (Statement statement = connection.createStatement()) {
                statement.execute("COMMIT");
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(eventSql.consumer(stream, "c").parkedEvents(1).getFirst().error())
                .contains("the handler has ended the transaction");
    }

    @Test
    void redrive_parkedKey_takesEffectOnceInTheTransaction() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 60, 3);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add("10");
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        try (Subscription ignored = eventSql.subscribeTransactional(spec, (event, connection) -> {
            write(connection, event);
            if (failing.contains(event.text())) {
                throw new IllegalStateException("not now");
            }
        })) {
            awaitLag(stream, 0);
            assertThat(effects(stream)).hasSize(60 - 17);
            failing.clear();
            eventSql.consumer(stream, "c").redrive();
            await().until(() -> eventSql.consumer(stream, "c").parkedEvents(100).isEmpty());
        }
        assertThat(effects(stream)).containsExactlyInAnyOrderElementsOf(texts(0, 60));
        assertThat(effects(stream).stream().filter(t -> Integer.parseInt(t) % 3 == 1))
                .as("effects of the redriven key")
                .containsExactlyElementsOf(texts(0, 60).stream()
                        .filter(t -> Integer.parseInt(t) % 3 == 1)
                        .toList());
    }

    @Test
    void lease_handlerIdleInTransaction_isNotTerminated() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        EventSql process = cluster.open(settings -> settings.lease(Duration.ofSeconds(1)));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        try (Subscription ignored = process.subscribeTransactional(consumer(stream), (event, connection) -> {
            tried.add(event.text());
            write(connection, event);
            begun.countDown();
            release.await();
        })) {
            begun.await();
            // Three times the lease, by the database's clock.
            await().until(() -> Sql.queryLong(
                            cluster.dataSources().getFirst(),
                            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                                    + " AND clock_timestamp() - state_change > interval '3 seconds'")
                    > 0);
            release.countDown();
            awaitLag(stream, 0);
        }
        assertThat(tried).containsExactly("0");
        assertThat(effects(stream)).containsExactly("0");
    }

    @Test
    void statement_longerThanNetworkTimeout_isLimitedByHandlerTimeout() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 2, 1);
        EventSql process = cluster.open(settings -> settings.networkTimeout(Duration.ofMillis(500)));
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        try (Subscription ignored = process.subscribeTransactional(consumer(stream), (event, connection) -> {
            tried.add(event.text());
            write(connection, event);
            if (event.text().equals("0")) {
                sleep(connection, 2);
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).as("one attempt each").containsExactly("0", "1");
        assertThat(effects(stream)).containsExactly("0", "1");
    }

    @Test
    void statement_longerThanHandlerTimeout_isReportedAndItsPartitionMoves() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        Queue<ConsumerPartition> timedOut = new ConcurrentLinkedQueue<>();
        AtomicBoolean first = new AtomicBoolean(true);
        ConsumerSpec spec = consumer(stream).withHandlerTimeout(Duration.ofMillis(200));
        try (EventSql process = EventSql.builder(cluster.dataSources())
                        .settings(
                                Settings.builder().lease(Duration.ofSeconds(1)).build())
                        .listener(new ConsumerListener() {
                            @Override
                            public void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {
                                timedOut.add(partition);
                            }
                        })
                        .build();
                Subscription ignored = process.subscribeTransactional(spec, (event, connection) -> {
                    write(connection, event);
                    if (first.getAndSet(false)) {
                        sleep(connection, 600);
                    }
                })) {
            awaitLag(stream, 0);
        }
        assertThat(timedOut).isNotEmpty();
        assertThat(effects(stream)).containsExactly("0");
    }

    private static void sleep(Connection connection, int seconds) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT pg_sleep(" + seconds + ")");
        }
    }

    @Test
    void keyConcurrency_withTransactionsOrBatches_isRejected() {
        ConsumerSpec spec = consumer(newStream()).withKeyConcurrency(2);
        for (Runnable subscribe : List.<Runnable>of(
                () -> eventSql.subscribeTransactional(spec, (event, connection) -> {}),
                () -> eventSql.subscribeTransactionalBatch(spec, (events, connection) -> {}),
                () -> eventSql.subscribeBatch(spec, events -> {}))) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(subscribe::run)
                    .withMessageContaining("consumer.keyConcurrency must be 1");
        }
    }
}
