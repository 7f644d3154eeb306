package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerOverview;
import io.eventsql.ConsumerSpec;
import io.eventsql.ConsumerStatus;
import io.eventsql.ConsumerSummary;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.Subscription;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The state of all consumers of a cluster, and the one instance at a time that reports it. */
@Timeout(120)
class AllConsumersIT {
    private static final Duration LONG_LEASE = Duration.ofMinutes(10);
    private static final RetryPolicy ONE_ATTEMPT = RetryPolicy.defaults().withMaxAttempts(1);

    private static TestCluster cluster;

    private final String orders = TestStreams.newName();
    private final String payments = TestStreams.newName();
    private EventSql eventSql;

    @BeforeAll
    static void createDatabases() {
        cluster = TestCluster.ofShards(2);
    }

    @AfterAll
    static void dropDatabases() {
        cluster.close();
    }

    @BeforeEach
    void open() {
        eventSql = cluster.open();
        for (String stream : List.of(orders, payments)) {
            eventSql.createStream(TestStreams.of(stream).withPartitions(2).withSegmentSize(100));
        }
    }

    @AfterEach
    void deleteConsumers() throws SQLException {
        cluster.closeInstances();
        cluster.execute("DELETE FROM eventsql.consumer");
    }

    private void publish(String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("key " + i, "event " + i))
                                .toList());
    }

    private static Optional<ConsumerStatus> find(ConsumerOverview overview, String stream, String consumer) {
        return overview.consumers().stream()
                .filter(c -> c.stream().equals(stream) && c.consumer().equals(consumer))
                .findFirst();
    }

    private ConsumerStatus status(String stream, String consumer) {
        return find(eventSql.consumers(), stream, consumer).orElseThrow();
    }

    @Test
    void consumers_ofAllStreamsAndShards_membersLagAgeStateAndLastError() {
        Subscription mailer = eventSql.subscribe(
                ConsumerSpec.of(orders, "mailer").withRetry(ONE_ATTEMPT).withFailurePolicy(FailurePolicy.STOP),
                event -> {
                    if (event.text().equals("event 7")) {
                        throw new IllegalStateException("thrown for event 7");
                    }
                });
        cluster.open()
                .subscribe(
                        ConsumerSpec.of(payments, "ledger")
                                .withRetry(ONE_ATTEMPT)
                                .withFailurePolicy(FailurePolicy.PARK_KEY),
                        event -> {
                            throw new IllegalStateException("thrown for " + event.text());
                        });
        publish(orders, 0, 100);
        publish(payments, 0, 40);

        await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
            ConsumerStatus stopped = status(orders, "mailer");
            assertThat(stopped.partitions()).hasSize(4);
            assertThat(stopped.partitions(Status.STOPPED)).isOne();
            assertThat(stopped.partitions().stream()
                            .filter(p -> p.status() == Status.RUNNING)
                            .mapToLong(p -> p.lag()))
                    .containsOnly(0L);
            assertThat(stopped.lag()).isPositive();
            assertThat(stopped.members()).hasSize(1);
            assertThat(stopped.lastError()).contains("thrown for event 7");
            ConsumerStatus parked = status(payments, "ledger");
            assertThat(parked.lag()).isZero();
            assertThat(parked.behind()).isZero();
            assertThat(parked.parkedEvents()).isEqualTo(40);
            assertThat(parked.members()).hasSize(1);
            assertThat(parked.lastError()).contains("thrown for event");
            assertThat(parked.lastErrorAt()).isNotNull();
        });
        assertThat(eventSql.consumers().unavailableShards()).isEmpty();
        Duration behind = status(orders, "mailer").behind();
        await().until(() -> status(orders, "mailer").behind().compareTo(behind) > 0);
        assertThat(status(orders, "mailer").partitions().stream().filter(p -> p.lag() == 0))
                .allSatisfy(p -> assertThat(p.behind()).isZero());

        mailer.close();
        assertThat(status(orders, "mailer").members()).isEmpty();
        assertThat(status(orders, "mailer").partitions(Status.STOPPED)).isOne();
    }

    @Test
    void consumers_behindBySegments_ageIsThatOfTheNextEvent() throws SQLException {
        eventSql.subscribe(ConsumerSpec.of(orders, "late"), event -> {}).close();
        publish(orders, 0, 500);
        String table = TestStreams.table(orders);
        cluster.execute("UPDATE " + table + " SET published_at = published_at - interval '1 hour'"
                + " WHERE event_offset < 100");

        assertThat(status(orders, "late").behind()).isBetween(Duration.ofHours(1), Duration.ofMinutes(62));
        assertThat(eventSql.consumers(0, 10))
                .anySatisfy(
                        summary -> assertThat(summary.behind()).isBetween(Duration.ofHours(1), Duration.ofMinutes(62)));
        // Events that are missing: the next one that exists; then, at least, the time of the last publish.
        cluster.execute("DELETE FROM " + table + " WHERE event_offset < 100");
        assertThat(status(orders, "late").behind()).isLessThan(Duration.ofMinutes(2));
        cluster.execute("DELETE FROM " + table);
        assertThat(status(orders, "late").lag()).isEqualTo(500);
        assertThat(status(orders, "late").behind()).isPositive();
    }

    @Test
    void consumers_shardUnavailable_isNamedAndTheOthersAreListed() {
        eventSql.subscribe(ConsumerSpec.of(orders, "mailer"), event -> {}).close();
        SwitchableDataSource second =
                new SwitchableDataSource(cluster.dataSources().get(1));
        try (EventSql other = EventSql.builder(
                        List.<DataSource>of(cluster.dataSources().get(0), second))
                .build()) {
            second.setAvailable(false);

            ConsumerOverview overview = other.consumers();

            assertThat(overview.unavailableShards()).hasSize(1);
            assertThat(overview.unavailableShards().get("shard1")).contains("made unavailable by the test");
            assertThat(find(overview, orders, "mailer").orElseThrow().partitions())
                    .hasSize(2)
                    .allSatisfy(p -> assertThat(p.shard()).isZero());
            second.setAvailable(true);
            assertThat(other.consumers().unavailableShards()).isEmpty();
        }
    }

    @Test
    void report_twoInstances_oneReports_untilItIsClosed() {
        eventSql.subscribe(ConsumerSpec.of(orders, "mailer"), event -> {}).close();
        publish(orders, 0, 20);
        EventSql other = cluster.open();

        List<ConsumerSummary> reported =
                eventSql.reportConsumers(0, 10, LONG_LEASE).orElseThrow();

        assertThat(reported).hasSize(1);
        assertThat(reported.getFirst().members()).isZero();
        assertThat(reported.getFirst().lag()).isPositive();
        assertThat(reported.getFirst().behind()).isPositive();
        for (int i = 0; i < 5; i++) {
            assertThat(other.reportConsumers(0, 10, LONG_LEASE)).isEmpty();
            assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).isPresent();
        }
        assertThat(other.reportConsumers(1, 10, LONG_LEASE))
                .as("each database has its own")
                .isPresent();

        eventSql.close();
        assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).isEmpty();
        assertThat(other.reportConsumers(0, 10, LONG_LEASE)).isPresent();
    }

    @Test
    void report_withoutConsumers_isEmptyAndNotThatOfAnother() {
        assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).contains(List.of());
    }

    @Test
    void report_leaseExpiredOrInTheFarFuture_isTakenOver() throws SQLException {
        EventSql other = cluster.open();
        assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).isPresent();
        cluster.execute("UPDATE eventsql.consumer_reporter SET expires_at = clock_timestamp() - interval '1 ms'");
        assertThat(other.reportConsumers(0, 10, LONG_LEASE)).isPresent();
        assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).isEmpty();
        // The database's clock was set back by a day.
        cluster.execute("UPDATE eventsql.consumer_reporter SET expires_at = clock_timestamp() + interval '1 day'");
        assertThat(eventSql.reportConsumers(0, 10, LONG_LEASE)).isPresent();
    }

    @Test
    void report_invalidInput_isRejected() {
        assertRejected("shard", () -> eventSql.reportConsumers(2, 10, LONG_LEASE));
        assertRejected("max", () -> eventSql.reportConsumers(0, 0, LONG_LEASE));
        assertRejected("lease", () -> eventSql.reportConsumers(0, 1, Duration.ofMillis(1)));
        assertRejected("lease", () -> eventSql.reportConsumers(0, 1, Duration.ofDays(1)));
    }

    private static void assertRejected(String field, Runnable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call::run)
                .satisfies(e -> assertThat(e.field()).isEqualTo(field));
    }
}
