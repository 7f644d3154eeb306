package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.ReadFrom;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Comparator;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: consumers and readers have the rights that they need, also where default privileges keep functions from PUBLIC:
 * {@code roles.sql} grants those that run with the caller's rights. What they must not do is in {@link DeniedStatementsIT}.
 */
class ConsumerRoleIT extends RolesFixture {
    @Override
    DataSource createDatabase() throws Exception {
        return RolesDatabases.create(false);
    }

    @Test
    void consumer_busyStream_createsItsFetchFunctionAndCallsIt() throws SQLException {
        publish(owner, 0, 10);
        String prepare = "SELECT eventsql.prepare_fetch_v1(stream_id) FROM eventsql.stream WHERE name = 'orders'";
        assertThat(Sql.query(login("eventsql_consumer"), prepare)).containsExactly("events_orders__fetch");
        assertThat(Sql.query(
                        login("eventsql_consumer"),
                        "SELECT count(*) FROM eventsql.stream s, eventsql.events_orders__fetch(NULL, s.stream_id, s.name,"
                                + " ARRAY[0], ARRAY[0::bigint], 100, ARRAY[100000]) WHERE s.name = 'orders'"))
                .doesNotContain("0");
        assertDenied(login("eventsql_publisher"), prepare);
        assertDenied(login("eventsql_reader"), prepare);
    }

    @Test
    void consumer_acrossSegments_consumesParksAndSendsDeadLetters() throws SQLException {
        owner.createStream(DEAD_LETTERS);
        EventSql publisher = as("eventsql_publisher");
        EventSql consumer = as("eventsql_consumer");
        Handled handled = new Handled();
        ConsumerSpec parking = ConsumerSpec.of("orders", "parking")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.PARK_KEY)
                .withDeadLetterStream("orders_dead");
        ConsumerSpec deadLetters = ConsumerSpec.of("orders", "dead")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("orders_dead");
        try (Subscription ignored = consumer.subscribe(parking, event -> failOn("k3", event, handled));
                Subscription alsoIgnored =
                        consumer.subscribe(deadLetters, event -> failOn("k4", event, new Handled()))) {
            publish(publisher, 0, 400);

            assertThat(handled.awaitSize(360).positions())
                    .doesNotHaveDuplicates()
                    .isSortedAccordingTo(Comparator.comparingLong(EventPosition::offset));
            await().untilAsserted(() -> {
                assertThat(consumer.consumer("orders", "parking").parkedEvents(1_000))
                        .hasSize(40);
                assertThat(consumer.consumer("orders", "dead").parkedEvents(1_000))
                        .hasSize(40);
            });
        }
        read(as("eventsql_reader"), "orders_dead", 40);
        assertThat(consumer.consumer("orders", "parking").state())
                .extracting(PartitionState::lag)
                .containsOnly(0L);
    }

    private static void failOn(String key, StoredEvent event, Handled handled) {
        if (key.equals(event.key())) {
            throw new IllegalStateException("as planned");
        }
        handled.add(event);
    }

    @Test
    void consumer_exactlyOnceAndSeek_works() throws SQLException {
        EventSql publisher = as("eventsql_publisher");
        HikariDataSource pool = login("eventsql_consumer");
        EventSql consumer = open(pool);
        Sql.execute(
                Roles.admin(database), "CREATE TABLE effect (event_offset bigint)", "GRANT ALL ON effect TO PUBLIC");
        try (Subscription ignored = consumer.subscribeTransactional(
                ConsumerSpec.of("orders", "c"), (event, connection) -> insertEffect(connection, event))) {
            publish(publisher, 0, 250);
            await().untilAsserted(() -> assertThat(Sql.queryLong(pool, "SELECT count(*) FROM effect"))
                    .isEqualTo(250));
        }

        consumer.consumer("orders", "c").seek(StartPosition.atOffset(200));
        try (Subscription ignored = consumer.subscribeTransactional(
                ConsumerSpec.of("orders", "c"), (event, connection) -> insertEffect(connection, event))) {
            await().untilAsserted(() -> assertThat(Sql.queryLong(pool, "SELECT count(*) FROM effect"))
                    .isEqualTo(300));
        }
        consumer.consumer("orders", "c").delete();
    }

    private static void insertEffect(Connection connection, StoredEvent event) throws SQLException {
        try (var statement = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
            statement.setLong(1, event.offset());
            statement.executeUpdate();
        }
    }

    @Test
    void reader_readsPositionsAndStates() throws SQLException {
        try (Subscription ignored = owner.subscribe(ConsumerSpec.of("orders", "c"), new Handled()::add)) {
            publish(owner, 0, 150);
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.lag() == 0));
        }
        HikariDataSource pool = login("eventsql_reader");
        EventSql reader = open(pool);
        read(reader, "orders", 150);
        assertThat(reader.positions("orders", "c")).allMatch(position -> position.lag() == 0);
        assertThat(reader.consumer("orders", "c").state()).hasSize(1);
        assertThat(reader.consumer("orders", "c").parkedEvents(10)).isEmpty();
        assertThat(Sql.queryLong(pool, "SELECT sum(lag) FROM eventsql.consumer_lag"))
                .isZero();
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> reader.consumer("orders", "c").pause())
                .withMessageContaining("permission denied");
    }

    /** The primary is its own replica here: the rights are replicated, so they are the same. */
    @ParameterizedTest
    @ValueSource(strings = {"eventsql_consumer", "eventsql_reader"})
    void replica_roleThatReads_isRead(String role) throws SQLException {
        publish(owner, 0, 150);
        HikariDataSource pool = login(role);
        EventSql eventSql = EventSql.builder(pool).replica(pool, login(role)).build();
        opened.add(eventSql);
        await().until(() -> eventSql.replicas().getFirst().isUsed());
        assertThat(eventSql.read(new EventPosition("orders", 0, 0, 0), 200, ReadFrom.REPLICA))
                .hasSize(150);
        assertThat(eventSql.replicas().getFirst().problem()).isNull();
        assertDenied(pool, "INSERT INTO eventsql.replicated_incarnation VALUES ('mine', now())");
    }
}
