package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventFailedException;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.TransactionBoundary;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Handlers in transactions that the application begins and ends, correctly or not: their writes are committed together
 * with the offset, or not at all.
 */
class TransactionBoundaryIT extends ConsumerFixture {
    @BeforeAll
    void createTable() throws SQLException {
        // No primary key, so that a duplicate effect is visible.
        cluster.execute("CREATE TABLE effect (stream text, text text, at bigint GENERATED ALWAYS AS IDENTITY)");
    }

    /** Runs the work as a framework does, on a data source of its choice. */
    private static class Transactions implements TransactionBoundary {
        final AtomicInteger begun = new AtomicInteger();
        final AtomicInteger committed = new AtomicInteger();

        @Override
        public void inTransaction(ShardInfo shard, Work work) throws Exception {
            try (Connection connection = dataSource(shard).getConnection()) {
                connection.setAutoCommit(false);
                begun.incrementAndGet();
                try {
                    prepare(connection);
                    work.run(connection);
                    commit(connection);
                    committed.incrementAndGet();
                } catch (Throwable e) {
                    connection.rollback();
                    throw e;
                } finally {
                    connection.setAutoCommit(true);
                }
            }
        }

        DataSource dataSource(ShardInfo shard) {
            return shard.dataSource();
        }

        void prepare(Connection connection) throws SQLException {}

        void commit(Connection connection) throws SQLException {
            connection.commit();
        }
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
        Transactions transactions = new Transactions();
        AtomicInteger tried = new AtomicInteger();
        try (Subscription ignored =
                eventSql.subscribeTransactional(consumer(stream), transactions, (event, connection) -> {
                    write(connection, event);
                    if (tried.incrementAndGet() % 3 == 0) {
                        throw tried.get() % 2 == 0
                                ? new IllegalStateException("after the write")
                                : new SQLException("after the write");
                    }
                })) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactlyElementsOf(texts(0, 30));
        assertThat(transactions.committed).hasValue(30);
        assertThat(transactions.begun).hasValue(tried.get());
    }

    @Test
    void networkTimeout_duringAndAfterTheWork_isThatOfTheHandlerAndThenTheFormerOne() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 2, 1);
        int ofTheApplication = 12_345;
        Queue<Integer> afterTheWork = new ConcurrentLinkedQueue<>();
        Queue<Integer> inTheHandler = new ConcurrentLinkedQueue<>();
        Transactions transactions = new Transactions() {
            @Override
            public void inTransaction(ShardInfo shard, Work work) throws Exception {
                super.inTransaction(shard, connection -> {
                    connection.setNetworkTimeout(Runnable::run, ofTheApplication);
                    try {
                        work.run(connection);
                    } finally {
                        afterTheWork.add(connection.getNetworkTimeout());
                    }
                });
            }
        };
        AtomicInteger tried = new AtomicInteger();
        try (Subscription ignored = eventSql.subscribeTransactional(
                consumer(stream).withHandlerTimeout(Duration.ofMinutes(3)), transactions, (event, connection) -> {
                    inTheHandler.add(connection.getNetworkTimeout());
                    write(connection, event);
                    if (tried.incrementAndGet() == 1) {
                        throw new IllegalStateException("on purpose");
                    }
                })) {
            awaitLag(stream, 0);
        }
        assertThat(inTheHandler).hasSize(3).allMatch(ms -> ms >= 180_000);
        assertThat(afterTheWork).containsExactly(ofTheApplication, ofTheApplication, ofTheApplication);
        assertThat(effects(stream)).containsExactlyElementsOf(texts(0, 2));
    }

    @Test
    void batch_oneEventFails_othersTakeEffectOnce() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 30, 10);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored =
                eventSql.subscribeTransactionalBatch(spec, new Transactions(), (events, connection) -> {
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
    }

    @ParameterizedTest
    @ValueSource(ints = {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE})
    void handler_partitionLostInAnyIsolation_rollsBack(int isolation) throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        AtomicInteger tried = new AtomicInteger();
        Transactions transactions = new Transactions() {
            @Override
            void prepare(Connection connection) throws SQLException {
                connection.setTransactionIsolation(isolation);
            }
        };
        try (Subscription ignored =
                eventSql.subscribeTransactional(consumer(stream), transactions, (event, connection) -> {
                    write(connection, event);
                    if (tried.incrementAndGet() == 1) { // after the snapshot of this transaction: seek raises the epoch
                        eventSql.consumer(stream, "c").seek(io.eventsql.StartPosition.EARLIEST);
                    }
                })) {
            await().until(() -> tried.get() >= 2);
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactly("0");
    }

    @Test
    void commit_storedButThrows_isNotRetried() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        Transactions transactions = new Transactions() {
            @Override
            void commit(Connection connection) throws SQLException {
                super.commit(connection);
                throw new IllegalStateException(
                        "wrapped", new SQLException("connection lost before the response", "08006"));
            }
        };
        try (Subscription ignored =
                eventSql.subscribeTransactional(consumer(stream), transactions, (event, connection) -> {
                    tried.add(event.text());
                    write(connection, event);
                })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).containsExactly("0", "1", "2");
        assertThat(effects(stream)).containsExactly("0", "1", "2");
    }

    @Test
    void commit_violatesConstraint_countsAsFailedAttempt() throws SQLException {
        cluster.execute("CREATE TABLE checked_late (text text UNIQUE DEFERRABLE INITIALLY DEFERRED)");
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = eventSql.subscribeTransactional(spec, new Transactions(), (event, connection) -> {
            try (Statement statement = connection.createStatement()) {
                statement.execute("INSERT INTO checked_late VALUES ('" + event.text() + "')");
                if (event.text().equals("1")) {
                    statement.execute("INSERT INTO checked_late VALUES ('1')");
                }
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(Sql.query(cluster.dataSources().getFirst(), "SELECT text FROM checked_late ORDER BY 1"))
                .containsExactly("0", "2");
        assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                .singleElement()
                .satisfies(event -> assertThat(event.error()).contains("duplicate key"));
    }

    @Test
    void commit_losesConnection_isNoAttempt() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        AtomicInteger commits = new AtomicInteger();
        Transactions transactions = new Transactions() {
            @Override
            void commit(Connection connection) throws SQLException {
                if (commits.incrementAndGet() == 2) {
                    connection.rollback();
                    throw new SQLException("Connection is closed"); // HikariCP's message, without a SQLSTATE
                }
                super.commit(connection);
            }
        };
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.STOP);
        try (Subscription ignored =
                eventSql.subscribeTransactional(spec, transactions, (event, connection) -> write(connection, event))) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactly("0", "1", "2");
    }

    @Test
    void begin_failsTemporarily_isNoAttempt() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        AtomicInteger calls = new AtomicInteger();
        Transactions transactions = new Transactions() {
            @Override
            public void inTransaction(ShardInfo shard, Work work) throws Exception {
                if (calls.incrementAndGet() < 4) {
                    throw new IllegalStateException("no connection");
                }
                super.inTransaction(shard, work);
            }
        };
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.STOP);
        try (Subscription ignored =
                eventSql.subscribeTransactional(spec, transactions, (event, connection) -> write(connection, event))) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactly("0", "1", "2");
    }

    @Test
    void boundary_ofAnotherDatabase_writesNothingAndIsNoAttempt() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        try (TestCluster other = TestCluster.ofShards(1)) {
            other.execute("CREATE TABLE effect (stream text, text text)");
            AtomicInteger calls = new AtomicInteger();
            Transactions elsewhere = new Transactions() {
                @Override
                DataSource dataSource(ShardInfo shard) {
                    if (calls.incrementAndGet()
                            == 3) { // now with the same stream and consumer, down to ids and offsets
                        other.open().createStream(TestStreams.of(stream).withPartitions(1));
                    }
                    return other.dataSources().getFirst();
                }
            };
            ConsumerSpec spec =
                    consumer(stream).withRetry(RetryPolicy.defaults().withMaxAttempts(1));
            try (Subscription ignored =
                    eventSql.subscribeTransactional(spec, elsewhere, (event, connection) -> write(connection, event))) {
                await().until(() -> calls.get() >= 6);
                assertThat(state(stream))
                        .singleElement()
                        .satisfies(p -> assertThat(p.status()).isEqualTo(PartitionState.Status.RUNNING));
            }
            assertThat(other.sum("SELECT count(*) FROM effect")).isZero();
        }
        assertThat(effects(stream)).isEmpty();
        assertThat(state(stream))
                .singleElement()
                .satisfies(p -> assertThat(p.lag()).isEqualTo(1));
    }

    @Test
    void boundary_ignoresHandlerFailure_commitsNothingWithoutTheOffset() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        AtomicInteger tried = new AtomicInteger();
        TransactionBoundary careless = (shard, work) -> {
            try (Connection connection = shard.dataSource().getConnection()) {
                connection.setAutoCommit(false);
                try {
                    work.run(connection);
                } catch (IllegalStateException e) {
                    assertThat(e).hasMessage("after the write");
                }
                connection.commit();
                connection.setAutoCommit(true);
            }
        };
        try (Subscription ignored = eventSql.subscribeTransactional(consumer(stream), careless, (event, connection) -> {
            write(connection, event);
            if (tried.incrementAndGet() == 2) {
                throw new IllegalStateException("after the write");
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).hasValue(4);
        assertThat(effects(stream)).containsExactly("0", "1", "2");
    }

    @Test
    void boundary_withoutTransaction_handlesNothing() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1, 1);
        AtomicInteger calls = new AtomicInteger();
        TransactionBoundary autocommit = (shard, work) -> {
            calls.incrementAndGet();
            try (Connection connection = shard.dataSource().getConnection()) {
                work.run(connection);
            }
        };
        try (Subscription ignored = eventSql.subscribeTransactional(
                consumer(stream), autocommit, (event, connection) -> write(connection, event))) {
            await().until(() -> calls.get() >= 3);
        }
        assertThat(effects(stream)).isEmpty();
    }

    @Test
    void boundary_runsWorkTwice_secondRunIsRejected() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 2, 1);
        Transactions twice = new Transactions() {
            @Override
            public void inTransaction(ShardInfo shard, Work work) throws Exception {
                super.inTransaction(shard, work);
                super.inTransaction(shard, work);
            }
        };
        try (Subscription ignored = eventSql.subscribeTransactional(
                consumer(stream), twice, (event, connection) -> write(connection, event))) {
            awaitLag(stream, 0);
        }
        assertThat(effects(stream)).containsExactly("0", "1");
    }

    @Test
    void redrive_parkedKey_takesEffectOnceInTheTransaction() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 6, 2);
        AtomicInteger fails = new AtomicInteger(1);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        try (Subscription ignored = eventSql.subscribeTransactional(spec, new Transactions(), (event, connection) -> {
            write(connection, event);
            if (event.text().equals("1") && fails.get() == 1) {
                throw new IllegalStateException("not now");
            }
        })) {
            awaitLag(stream, 0);
            assertThat(effects(stream)).containsExactly("0", "2", "4");
            fails.set(0);
            eventSql.consumer(stream, "c").redrive();
            await().until(() -> eventSql.consumer(stream, "c").parkedEvents(10).isEmpty());
        }
        assertThat(effects(stream)).containsExactly("0", "2", "4", "1", "3", "5");
    }
}
