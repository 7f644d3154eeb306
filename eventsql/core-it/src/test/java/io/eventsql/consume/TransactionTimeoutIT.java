package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a {@code transaction_timeout} (PostgreSQL 17), after which the server closes the connection, neither keeps an
 * exactly-once handler from succeeding nor has it called again and again. Method: a process whose sessions have one, and a handler that
 * sets one.
 */
@Timeout(180)
class TransactionTimeoutIT {
    private static final String STREAM = "orders";
    private static final int VERSION_MIN = 170_000;
    private static final Duration SHORT = Duration.ofMillis(1);

    private final AtomicInteger attempts = new AtomicInteger();
    private TestCluster cluster;

    @BeforeEach
    void createStream() throws SQLException {
        int version = Integer.parseInt(TestCluster.server().show("server_version_num"));
        assumeTrue(version >= VERSION_MIN, "transaction_timeout exists since PostgreSQL 17");
        cluster = TestCluster.ofShards(1);
        cluster.execute("CREATE TABLE effect (text text)");
        EventSql eventSql = cluster.open();
        eventSql.createStream(StreamSpec.of(STREAM).withPartitions(1));
        eventSql.publisher().publish(STREAM, Event.ofText("slow"));
    }

    @AfterEach
    void close() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private DataSource withTimeout(String timeout) {
        return new DelegatingDataSource(cluster.dataSources().getFirst()) {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                Sql.query(connection, "SELECT set_config('transaction_timeout', ?, false)", timeout);
                return connection;
            }
        };
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Shown before the fix: the handler was called again and again, and each time its transaction was terminated. */
    @Test
    void handler_longerThanTimeoutOfTheSession_isCommittedByItsFirstAttempt() throws SQLException {
        try (EventSql process = EventSql.builder(withTimeout("2s")).build();
                Subscription ignored =
                        process.subscribeTransactional(ConsumerSpec.of(STREAM, "c"), (event, connection) -> {
                            attempts.incrementAndGet();
                            execute(connection, "INSERT INTO effect VALUES ('" + event.text() + "')");
                            execute(connection, "SELECT pg_sleep(3)");
                        })) {
            await().atMost(Duration.ofSeconds(60)).until(() -> cluster.sum("SELECT count(*) FROM effect") > 0);
        }
        assertThat(attempts).hasValue(1);
        assertThat(cluster.sum("SELECT count(*) FROM effect")).isEqualTo(1);
    }

    /** Shown before the fix: no attempt was counted, so no failure policy applied. */
    @Test
    void handler_longerThanItsOwnTimeout_failsByItsPolicy() throws SQLException {
        EventSql process = cluster.open();
        ConsumerSpec spec = ConsumerSpec.of(STREAM, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = process.subscribeTransactional(spec, (event, connection) -> {
            attempts.incrementAndGet();
            execute(connection, "INSERT INTO effect VALUES ('" + event.text() + "')");
            execute(connection, "SET LOCAL transaction_timeout = '200ms'");
            execute(connection, "SELECT pg_sleep(30)");
        })) {
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> !process.consumer(STREAM, "c").parkedEvents(10).isEmpty());
        }
        assertThat(attempts).hasValue(2);
        assertThat(cluster.sum("SELECT count(*) FROM effect")).isZero();
    }
}
