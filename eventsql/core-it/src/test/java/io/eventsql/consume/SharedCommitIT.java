package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.fixture.FunctionCalls;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: the consumers of a process commit their offsets together, and each as if it were alone.
 *
 * <p>Method: many consumers of one stream with one partition.
 */
@Timeout(120)
class SharedCommitIT {
    private static final String STREAM = "shared";
    private static final int CONSUMERS = 20;
    private static final Duration LONG = Duration.ofSeconds(60);

    private FunctionCalls calls;
    private HikariDataSource pool;
    private EventSql eventSql;
    private final List<Handled> handled = new ArrayList<>();

    @BeforeEach
    void subscribe() throws SQLException {
        calls = FunctionCalls.inNewDatabase();
        pool = TestCluster.pool(calls.database());
        eventSql = EventSql.builder(pool).build();
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(1));
        for (int i = 0; i < CONSUMERS; i++) {
            Handled own = new Handled();
            handled.add(own);
            eventSql.subscribe(ConsumerSpec.of(STREAM, "c" + i), own::add);
        }
    }

    @AfterEach
    void close() {
        eventSql.close();
        pool.close();
    }

    private void publish(int from, int to) {
        for (int i = from; i < to; i++) {
            eventSql.publisher().publish(STREAM, Event.ofText("key", Integer.toString(i)));
        }
    }

    private long lag(int consumer) {
        return eventSql.consumer(STREAM, "c" + consumer).state().getFirst().lag();
    }

    private static IntStream consumers() {
        return IntStream.range(0, CONSUMERS);
    }

    private void awaitLags() {
        await().atMost(LONG).until(() -> consumers().allMatch(consumer -> lag(consumer) == 0));
    }

    private void assertHandledOnce(int to) {
        handled.forEach(own -> {
            own.awaitSize(to);
            own.assertOnceAndInOrder();
        });
    }

    @Test
    void manyConsumers_shareStatements() throws SQLException {
        for (int round = 0; round < 10; round++) {
            publish(round, round + 1);
            awaitLags();
        }
        assertHandledOnce(10);
        eventSql.close(); // its connections report their calls
        pool.close();
        long commits = 10L * CONSUMERS;
        assertThat(calls.count("^commit_offsets_v2$")).isPositive().isLessThan(commits / 3);
    }

    @Test
    void offsetOfOneConsumerIsLocked_othersCommit() throws SQLException {
        publish(0, 1);
        awaitLags();
        try (Connection blocking = calls.database().getConnection()) {
            blocking.setAutoCommit(false);
            Sql.query(
                    blocking,
                    "SELECT o.next_offset FROM eventsql.consumer_offset o JOIN eventsql.consumer c USING (consumer_id)"
                            + " WHERE c.name = 'c7' FOR UPDATE OF o");
            publish(1, 5);
            await().atMost(LONG).until(() -> consumers().allMatch(consumer -> consumer == 7 || lag(consumer) == 0));
            assertThat(lag(7)).isPositive();
            blocking.rollback();
        }
        awaitLags();
        assertHandledOnce(5);
    }

    /** What a member that takes a partition does; this one has not noticed it yet. */
    @Test
    void oneConsumerHasLostItsPartition_onlyThatOneIsHandledAgain() throws SQLException {
        publish(0, 1);
        awaitLags();
        Sql.execute(
                calls.database(),
                "SELECT eventsql.raise_epoch_v1(consumer_id, 0, 0) FROM eventsql.consumer WHERE name = 'c7'");
        publish(1, 5);
        awaitLags();
        for (int consumer = 0; consumer < CONSUMERS; consumer++) {
            Handled own = handled.get(consumer);
            if (consumer == 7) {
                await().atMost(LONG).untilAsserted(() -> assertThat(own.texts()).endsWith("0", "1", "2", "3", "4"));
            } else {
                own.awaitSize(5);
                own.assertOnceAndInOrder();
            }
        }
    }
}
