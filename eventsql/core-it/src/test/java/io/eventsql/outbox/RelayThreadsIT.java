package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;
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
 * Goal: no thread of the relay ends because of an Error or an interrupt that is not the library's own.
 *
 * <p>Method: the data source, whose code runs on the threads of the library, throws an Error or leaves an interrupt when a
 * certain thread borrows a connection.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class RelayThreadsIT {
    private static final String RELAY = "eventsql-relay-shard0";
    private static final String TRANSFER = "eventsql-transfer-shard0";
    private static final String LISTEN = "eventsql-relay-listen-shard0";

    private TestCluster cluster;
    private EventSql eventSql;
    private List<FaultyDataSource> dataSources;
    private String stream;

    /** Runs a fault on threads of one name, a given number of times. */
    private static final class FaultyDataSource extends DelegatingDataSource {
        private final AtomicInteger remaining = new AtomicInteger();
        private volatile String thread = "";
        private volatile Runnable fault = () -> {};

        FaultyDataSource(DataSource target) {
            super(target);
        }

        void plan(String threadPrefix, int times, Runnable planned) {
            thread = threadPrefix;
            fault = planned;
            remaining.set(times);
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            if (isAffected() && remaining.getAndDecrement() > 0) {
                try {
                    fault.run();
                } catch (Throwable e) {
                    connection.close();
                    throw e;
                }
            }
            return connection;
        }

        private boolean isAffected() {
            return !thread.isEmpty() && Thread.currentThread().getName().startsWith(thread);
        }
    }

    @BeforeAll
    void open() {
        cluster = TestCluster.ofShards(2);
        dataSources = cluster.dataSources().stream().map(FaultyDataSource::new).toList();
        eventSql = EventSql.builder(dataSources)
                .settings(Settings.builder().outboxLease(Duration.ofSeconds(1)).build())
                .build();
    }

    @BeforeEach
    void createStream() {
        stream = TestStreams.newName();
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
    }

    @AfterAll
    void close() {
        eventSql.close();
        cluster.close();
    }

    private void publish() throws SQLException {
        try (Connection transaction = cluster.dataSources().getFirst().getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox()
                    .publishAll(
                            transaction,
                            stream,
                            IntStream.range(0, 20)
                                    .mapToObj(i -> Event.ofText("key" + i, "x"))
                                    .toList());
            transaction.commit();
        }
    }

    private void awaitStored(int events) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(cluster.sum("SELECT count(*) FROM eventsql.events_" + stream))
                        .isEqualTo(events));
    }

    /** Waits until each planned fault has happened. */
    private void awaitFaults() {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> dataSources.stream().allMatch(dataSource -> dataSource.remaining.get() <= 0));
    }

    @ParameterizedTest
    @ValueSource(strings = {RELAY, TRANSFER})
    void relay_errorsOnItsThreads_continues(String thread) throws SQLException {
        publish();
        awaitStored(20);
        dataSources.getFirst().plan(thread, 5, () -> {
            throw new NoClassDefFoundError("a class of the driver");
        });
        publish();
        awaitFaults();
        awaitStored(40);
    }

    @ParameterizedTest
    @ValueSource(strings = {RELAY, TRANSFER})
    void relay_strayInterruptOnItsThreads_continues(String thread) throws SQLException {
        publish();
        awaitStored(20);
        dataSources.getFirst().plan(thread, 1, () -> Thread.currentThread().interrupt());
        publish();
        awaitFaults();
        awaitStored(40);
        publish();
        awaitStored(60);
    }

    /** Waits until a session other than the former one listens, which shows that as its last statement. */
    private String awaitListening(String former) {
        return await().atMost(Duration.ofSeconds(120))
                .until(
                        () -> Sql.query(
                                cluster.dataSources().getFirst(),
                                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                                        + " AND query = 'LISTEN eventsql_outbox'"),
                        pids -> pids.size() == 1 && !pids.getFirst().equals(former))
                .getFirst();
    }

    private static void terminate(String pid) throws SQLException {
        Sql.query(TestCluster.server().adminDataSource(), "SELECT pg_terminate_backend(" + pid + ")");
    }

    @Test
    void listen_errors_listensAgain() throws SQLException {
        String first = awaitListening("");
        dataSources.getFirst().plan(LISTEN, 3, () -> {
            throw new NoClassDefFoundError("a class of the driver");
        });
        terminate(first);
        awaitFaults();
        awaitListening(first);
    }

    /** The interrupt takes effect when the thread waits for its next attempt. */
    @Test
    void listen_strayInterrupt_listensAgain() throws SQLException {
        String first = awaitListening("");
        dataSources.getFirst().plan(LISTEN, 1, () -> Thread.currentThread().interrupt());
        terminate(first);
        awaitFaults();
        String second = awaitListening(first);
        terminate(second);
        awaitListening(second);
    }
}
