package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a jump of the database's clock by an hour loses and reorders nothing, and stalls nothing for longer than a few
 * leases. Method: every function of the library in the database reads a clock that the test moves.
 */
@Timeout(180)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClockJumpIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120); // far less than an hour
    private static final Duration LEASE = Duration.ofSeconds(1);
    private static final int PARTITIONS = 4;

    private final TestCluster cluster = TestCluster.ofShards(1);
    private final DataSource database = cluster.dataSources().getFirst();
    private String stream;
    private ConsumerSpec spec;
    private int published;

    @BeforeAll
    void replaceClock() throws SQLException {
        Sql.execute(
                database,
                "CREATE SCHEMA shifted",
                "CREATE TABLE shifted.clock (shift interval NOT NULL)",
                "INSERT INTO shifted.clock VALUES ('0')",
                "CREATE FUNCTION shifted.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
                        + " AS 'SELECT clock_timestamp() + shift FROM shifted.clock'");
        List<String> functions = Sql.query(
                database,
                "SELECT replace(pg_get_functiondef(p.oid), 'clock_timestamp()', 'shifted.now()')"
                        + " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
                        + " WHERE n.nspname = 'eventsql' AND p.prosrc LIKE '%clock_timestamp()%'");
        assertThat(functions).hasSizeGreaterThan(5);
        Sql.execute(database, functions.toArray(String[]::new));
    }

    @AfterAll
    void close() {
        cluster.close();
    }

    /** The clock stays where the tests before have moved it. */
    @BeforeEach
    void createStream() {
        stream = TestStreams.newName();
        spec = ConsumerSpec.of(stream, "c");
        published = 0;
        try (EventSql eventSql = open(database)) {
            eventSql.createStream(
                    TestStreams.of(stream).withPartitions(PARTITIONS).withSegmentSize(1_000));
        }
    }

    private EventSql open(DataSource dataSource) {
        return EventSql.builder(dataSource)
                .settings(Settings.builder()
                        .lease(LEASE)
                        .pollInterval(Duration.ofMillis(200))
                        .networkTimeout(Duration.ofSeconds(2))
                        .outboxLease(Duration.ofSeconds(1))
                        .outboxPollInterval(Duration.ofMillis(200))
                        .build())
                .build();
    }

    private void jump(int hours) throws SQLException {
        Sql.execute(database, "UPDATE shifted.clock SET shift = shift + interval '" + hours + " hours'");
    }

    private void publish(EventSql eventSql, int events) {
        for (int i = 0; i < events; i++) {
            eventSql.publisher().publish(stream, Event.ofText("key-" + published % 20, Integer.toString(published)));
            published++;
        }
    }

    private List<StoredEvent> stored(EventSql eventSql) {
        return IntStream.range(0, PARTITIONS)
                .mapToObj(partition -> new EventPosition(stream, 0, partition, 0))
                .flatMap(from -> eventSql.read(from, 100_000).stream())
                .toList();
    }

    private void awaitLagZero(EventSql eventSql) {
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(eventSql.consumer(stream, "c").state().stream()
                                .mapToLong(PartitionState::lag)
                                .sum())
                        .isZero());
    }

    /** Every event, and the events of each key in order when each is counted once. */
    private void assertAllInOrder(Handled handled) {
        Map<String, Integer> last = new HashMap<>();
        HashSet<Integer> all = new HashSet<>();
        for (StoredEvent event : handled.events()) {
            int number = Integer.parseInt(event.text());
            if (all.add(number)) {
                Integer before = last.put(event.key(), number);
                assertThat(number).as("first handling of %s", event.key()).isGreaterThan(before == null ? -1 : before);
            }
        }
        assertThat(all).hasSize(published);
    }

    @Test
    void jumps_membersAndPublisherRun_nothingIsLostOrReordered() throws SQLException {
        Random random = Seeds.random("jumps_membersAndPublisherRun_nothingIsLostOrReordered");
        Handled handled = new Handled();
        try (EventSql publisher = open(database);
                EventSql one = open(database);
                EventSql two = open(database)) {
            one.subscribe(spec, handled::add);
            two.subscribe(spec, handled::add);
            for (int round = 0; round < 6; round++) {
                publish(publisher, 25);
                jump(random.nextBoolean() ? 1 : -1);
                publish(publisher, 25);
                awaitLagZero(publisher);
            }
            List<StoredEvent> stored = stored(publisher);
            assertThat(stored).as("each once").hasSize(published);
            Map<Integer, Instant> last = new HashMap<>();
            for (StoredEvent event : stored) {
                Instant before = last.put(event.position().partition(), event.publishedAt());
                assertThat(event.publishedAt())
                        .as("published_at never runs backwards")
                        .isAfterOrEqualTo(before == null ? Instant.MIN : before);
            }
        }
        assertAllInOrder(handled);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1})
    void jump_ownerHasDied_anotherMemberTakesItsPartitions(int hours) throws SQLException {
        Handled handled = new Handled();
        SwitchableDataSource ofFirst = new SwitchableDataSource(database);
        try (EventSql publisher = open(database);
                EventSql first = open(ofFirst)) {
            first.subscribe(spec, handled::add);
            publish(publisher, 40);
            awaitLagZero(publisher);
            ofFirst.setAvailable(false); // for the database it is dead
            jump(hours);
            publish(publisher, 40);
            try (EventSql second = open(database)) {
                second.subscribe(spec, handled::add);
                awaitLagZero(publisher);
            }
        }
        assertAllInOrder(handled);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1})
    void jump_ownersLive_partitionsAreSharedAgain(int hours) throws SQLException {
        Handled handled = new Handled();
        try (EventSql one = open(database);
                EventSql two = open(database)) {
            one.subscribe(spec, handled::add);
            two.subscribe(spec, handled::add);
            awaitTwoEach(one);
            jump(hours);
            publish(one, 40);
            awaitLagZero(one);
            awaitTwoEach(one);
        }
        assertAllInOrder(handled);
    }

    private void awaitTwoEach(EventSql eventSql) {
        await().atMost(DEADLINE).untilAsserted(() -> {
            Map<String, Integer> held = new HashMap<>();
            for (PartitionState state : eventSql.consumer(stream, "c").state()) {
                if (state.member() != null) {
                    held.merge(state.member(), 1, Integer::sum);
                }
            }
            assertThat(held.values()).containsExactly(PARTITIONS / 2, PARTITIONS / 2);
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1})
    void jump_relayHasDied_anotherProcessRelaysTheOutbox(int hours) throws SQLException {
        SwitchableDataSource ofFirst = new SwitchableDataSource(database);
        Handled handled = new Handled();
        try (EventSql first = open(ofFirst);
                EventSql consumer = open(database)) {
            publishByOutbox(first);
            consumer.subscribe(spec, handled::add);
            handled.awaitSize(1);
            ofFirst.setAvailable(false);
            jump(hours);
            publishByOutbox(consumer);
            handled.awaitSize(2);
        }
        assertThat(handled.texts()).containsExactly("0", "1");
    }

    private void publishByOutbox(EventSql eventSql) throws SQLException {
        try (Connection connection = database.getConnection()) {
            connection.setAutoCommit(false);
            eventSql.outbox().publish(connection, stream, Event.ofText("key", Integer.toString(published++)));
            connection.commit();
            connection.setAutoCommit(true);
        }
    }

    /** The rows of a producer that is alive, but idle for days, expire; its next batches are stored once and in order. */
    @Test
    void producer_idleForDays_continuesWhereItWas() throws SQLException {
        try (EventSql idle = open(database);
                EventSql other = open(database)) {
            publish(idle, 40);
            publish(other, 40);
            try (Connection connection = database.getConnection();
                    PreparedStatement delete = connection.prepareStatement(
                            "DELETE FROM eventsql.producer_batch b WHERE EXISTS (SELECT FROM eventsql.producer_batch n"
                                    + " WHERE n.stream_id = b.stream_id AND n.partition = b.partition"
                                    + " AND n.next_offset > b.next_offset)")) {
                assertThat(delete.executeUpdate()).isPositive(); // what DeadProducers does after a day
            }
            jump(1);
            publish(idle, 40);
            jump(-1);
            publish(other, 40);
            publish(idle, 40);
            List<StoredEvent> stored = stored(other);
            assertThat(stored).hasSize(published);
            Map<String, TreeSet<Integer>> seen = new HashMap<>();
            for (StoredEvent event : stored) {
                TreeSet<Integer> ofKey = seen.computeIfAbsent(event.key(), key -> new TreeSet<>());
                int number = Integer.parseInt(event.text());
                assertThat(ofKey.isEmpty() || ofKey.last() < number).isTrue();
                ofKey.add(number);
            }
        }
    }
}
