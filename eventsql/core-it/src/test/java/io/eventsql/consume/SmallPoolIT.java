package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: consuming needs one connection next to the one that listens and those of transactional handlers: no path waits for a
 * second one while it holds one. With fewer connections a consumer is refused, and nothing of it is started.
 *
 * <p>Method: pools of the required size, and of one connection less; other processes create the stream, so that this one has
 * to look everything up.
 */
@Timeout(120)
class SmallPoolIT {
    private static final int EVENTS = 60;
    private static final Duration LEASE = Duration.ofSeconds(1);

    private static TestCluster cluster;
    /** The other process. */
    private static EventSql other;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void openCluster() {
        cluster = TestCluster.ofShards(1);
        other = cluster.open();
    }

    @AfterAll
    static void closeCluster() {
        cluster.close();
    }

    private static HikariDataSource pool(int size) throws SQLException {
        try (Connection connection = cluster.dataSources().getFirst().getConnection()) {
            return Pools.pool(TestCluster.server(), connection.getMetaData().getURL(), config -> {
                config.setMaximumPoolSize(size);
                config.setConnectionTimeout(10_000);
            });
        }
    }

    @Test
    void poolOfOne_consumer_isRefusedAndPublishingContinues() throws SQLException {
        try (HikariDataSource pool = pool(1);
                EventSql eventSql = EventSql.builder(pool).build()) {
            eventSql.createStream(TestStreams.of(stream).withPartitions(2));
            eventSql.publisher().publish(stream, Event.ofText("x"));
            assertThatThrownBy(() -> eventSql.subscribe(ConsumerSpec.of(stream, "c"), event -> {}))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContainingAll(
                            "dataSource[shard0] is a pool of 1 connections, but at least 2 are needed",
                            "1 shared by publishing",
                            "1 to listen for signals");
            assertNothingIsStarted(eventSql);
            eventSql.publisher().publish(stream, Event.ofText("y"));
        }
    }

    private void assertNothingIsStarted(EventSql eventSql) throws SQLException {
        assertThat(eventSql.subscriptions()).isEmpty();
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.consumer JOIN eventsql.stream s USING (stream_id)"
                        + " WHERE s.name = '" + stream + "'"))
                .isZero();
    }

    /** While every handler has a connection for longer than the lease, leases are renewed and events published. */
    @Test
    void transactionalHandlers_poolOfRequiredSize_keepTheirLeases() throws Exception {
        int partitions = 3;
        int required = partitions + 3;
        ConsumerSpec spec = ConsumerSpec.of(stream, "c");
        Settings settings = Settings.builder().lease(LEASE).build();
        other.createStream(TestStreams.of(stream).withPartitions(partitions));
        try (HikariDataSource pool = pool(required - 1);
                EventSql eventSql = EventSql.builder(pool).settings(settings).build()) {
            assertThatThrownBy(() -> eventSql.subscribeTransactional(spec, (event, connection) -> {}))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContainingAll(
                            "but at least " + required + " are needed", partitions + " for transactional handlers");
            assertNothingIsStarted(eventSql);
            eventSql.subscribeTransactional(spec.withConcurrency(partitions - 1), (event, connection) -> {})
                    .close();
        }
        Revocations revocations = new Revocations();
        Handled handled = new Handled();
        CountDownLatch released = new CountDownLatch(1);
        try (HikariDataSource pool = pool(required);
                EventSql eventSql = EventSql.builder(pool)
                        .settings(settings)
                        .listener(revocations)
                        .build()) {
            eventSql.subscribeTransactional(spec, (event, connection) -> {
                handled.add(event);
                released.await();
            });
            long end = System.nanoTime() + LEASE.multipliedBy(3).toNanos();
            AtomicInteger published = new AtomicInteger();
            await().atMost(Duration.ofSeconds(120))
                    .pollInterval(Duration.ofMillis(10))
                    .until(() -> {
                        eventSql.publisher().publish(stream, Event.ofText("key" + published.getAndIncrement(), "x"));
                        return handled.size() >= partitions && System.nanoTime() > end;
                    });
            released.countDown();
            handled.awaitSize(published.get()).assertOnceAndInOrder();
            assertThat(revocations.reasons).isEmpty();
        } finally {
            released.countDown();
        }
    }

    private static final class Revocations implements ConsumerListener {
        private final List<Reason> reasons = new CopyOnWriteArrayList<>();

        @Override
        public void partitionRevoked(ConsumerPartition partition, Reason reason) {
            reasons.add(reason);
        }
    }

    @ParameterizedTest
    @EnumSource(FailurePolicy.class)
    void poolOfTwo_eventsFail_allAreHandledOrStored(FailurePolicy policy) throws Exception {
        other.createStream(TestStreams.of(stream).withPartitions(2));
        other.createStream(TestStreams.of(stream + "_dead_letter").withPartitions(2));
        Handled handled = new Handled();
        boolean fails = policy != FailurePolicy.STOP;
        try (HikariDataSource pool = pool(2);
                EventSql eventSql = EventSql.builder(pool).build()) {
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "c")
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                            .withFailurePolicy(policy),
                    event -> {
                        if (fails && event.offset() % 10 == 0) {
                            throw new IllegalStateException("cannot handle it");
                        }
                        handled.add(event);
                    });
            for (int i = 0; i < EVENTS; i++) {
                other.publisher().publish(stream, Event.ofText("key" + i, "value" + i));
            }
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> other.positions(stream, "c").stream().allMatch(p -> p.lag() == 0));
        }
        int failed = other.consumer(stream, "c").parkedEvents(EVENTS).size();
        assertThat(failed > 0).isEqualTo(fails);
        assertThat(handled.size() + failed).isEqualTo(EVENTS);
    }
}
