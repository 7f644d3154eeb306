package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.sql.MissingPrivilegeException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

/** Goal: a privilege that is missing is named with role, object and remedy, nothing is lost, and granting it is enough. */
class MissingPrivilegeIT extends RolesFixture {
    @Test
    void relay_losesARightWhileItRuns_continuesWhenGranted() throws SQLException {
        owner.close();
        HikariDataSource pool = login("eventsql_publisher");
        EventSql publisher = open(pool);
        try (EventSql relay = as("eventsql_relay")) {
            publishInTransactions(publisher, pool, 100);
            await().untilAsserted(() -> assertThat(stored()).isEqualTo(100));

            Sql.execute(ownerPool, "REVOKE DELETE ON eventsql.outbox FROM eventsql_relay");
            publishInTransactions(publisher, pool, 50);
            assertThat(relay.outbox().backlogs().getFirst().events()).isPositive();
            assertThat(stored()).isEqualTo(100);

            Sql.execute(ownerPool, "GRANT DELETE ON eventsql.outbox TO eventsql_relay");
            await().untilAsserted(() -> assertThat(stored()).isEqualTo(150));
        }
    }

    private long stored() throws SQLException {
        return Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders");
    }

    /** Otherwise a missing right would count as a failure of the handler, and dead-letter the event. */
    @Test
    void consumer_exactlyOnceMayNotCommit_isNoFailureOfTheHandler() throws SQLException {
        owner.createStream(DEAD_LETTERS);
        EventSql consumer = as("eventsql_consumer");
        ConsumerSpec spec = ConsumerSpec.of("orders", "c")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("orders_dead");
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribeTransactional(spec, (event, connection) -> handled.add(event))) {
            publish(owner, 0, 50);
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.nextOffset() == 50));
            Sql.execute(ownerPool, "REVOKE INSERT ON eventsql.consumer_offset FROM eventsql_consumer");
            publish(owner, 50, 100);
            handled.awaitSize(51);
            Sql.execute(ownerPool, "GRANT INSERT ON eventsql.consumer_offset TO eventsql_consumer");
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.nextOffset() == 100));
        }
        assertThat(owner.consumer("orders", "c").parkedEvents(10)).isEmpty();
    }

    /** Goal: a privilege that is missing is named with role and remedy, and granting it is enough. */
    @Test
    void publisher_mayNotAppend_errorNamesRoleObjectAndRemedy_untilGranted() throws SQLException {
        HikariDataSource pool = login("eventsql_reader");
        EventSql publisher = open(pool);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> publisher.publisher().publish("orders", Event.ofText("k", "x")))
                .withMessageContaining("Role login_")
                .withMessageContaining("permission denied for function append_v1")
                .withMessageContaining("eventsql_publisher");

        grant("eventsql_publisher", pool);

        assertThat(publisher
                        .publisher()
                        .publish("orders", Event.ofText("k", "x"))
                        .offset())
                .isZero();
    }

    private void grant(String role, HikariDataSource to) throws SQLException {
        String login = Sql.query(to, "SELECT current_user").getFirst();
        Sql.execute(Roles.admin(database), "GRANT " + role + " TO " + login);
    }

    @Test
    void publisher_mayNotAddSegments_errorNamesFunction_untilGranted() throws SQLException {
        Sql.execute(ownerPool, "REVOKE EXECUTE ON FUNCTION eventsql.ensure_segments_v1 FROM eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publish(publisher, 0, 200);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> publish(publisher, 200, 250))
                .withMessageContaining("Role login_")
                .withMessageContaining("permission denied for function ensure_segments_v1")
                .withMessageContaining("eventsql_publisher");

        Sql.execute(ownerPool, "GRANT EXECUTE ON FUNCTION eventsql.ensure_segments_v1 TO eventsql_publisher");

        publish(publisher, 200, 450);
        read(as("eventsql_reader"), "orders", 450);
    }

    /** Of many calls at once, those without room in a segment fail, each at once and alone; the others are stored. */
    @Test
    void publisher_mayNotAddSegments_everyCallHasItsOutcome_untilGranted() throws SQLException {
        Sql.execute(ownerPool, "REVOKE EXECUTE ON FUNCTION eventsql.ensure_segments_v1 FROM eventsql_publisher");
        owner.createStream(StreamSpec.of("payments").withPartitions(1));
        EventSql publisher = EventSql.builder(login("eventsql_publisher"))
                .settings(Settings.builder().maxBatchEvents(50).build())
                .build();
        opened.add(publisher);
        Map<String, CompletableFuture<EventPosition>> calls = new LinkedHashMap<>();
        List<CompletableFuture<EventPosition>> others = new ArrayList<>();
        List<String> failed;
        try (CapturedLog log = CapturedLog.ofAppending()) {
            for (int i = 0; i < 300; i++) {
                calls.put("" + i, publisher.publisher().publishAsync("orders", Event.ofText("k" + i % 10, "" + i)));
                others.add(publisher.publisher().publishAsync("payments", Event.ofText("k" + i % 10, "" + i)));
            }
            assertThat(others).allSatisfy(call -> assertThat(call).succeedsWithin(Duration.ofSeconds(30)));
            failed = awaitFailed(calls);
            assertThat(log.lines("Could not add a segment"))
                    .hasSizeBetween(1, 2) // once for each of the threads that append
                    .allMatch(line -> line.contains("permission denied for function ensure_segments_v1"));
        }
        assertThat(failed).hasSize(100);
        assertThat(texts(200)).doesNotContainAnyElementsOf(failed);

        Sql.execute(ownerPool, "GRANT EXECUTE ON FUNCTION eventsql.ensure_segments_v1 TO eventsql_publisher");

        failed.forEach(text -> publisher.publisher().publish("orders", Event.ofText("again", text)));
        assertThat(texts(300)).containsExactlyInAnyOrderElementsOf(calls.keySet());
    }

    /** Waits for all calls; returns the texts of those that failed, of which each was rejected at once. */
    private static List<String> awaitFailed(Map<String, CompletableFuture<EventPosition>> calls) {
        List<String> failed = new ArrayList<>();
        calls.forEach((text, call) -> {
            try {
                call.join();
            } catch (CompletionException e) {
                assertThat(e.getCause())
                        .isInstanceOf(EventNotStoredException.class)
                        .hasMessageContaining("the database rejected it")
                        .hasMessageContaining("Role login_")
                        .hasMessageContaining("permission denied for function ensure_segments_v1")
                        .hasMessageContaining("Grant it the role of its task: eventsql_publisher")
                        .hasCauseInstanceOf(MissingPrivilegeException.class);
                failed.add(text);
            }
        });
        return failed;
    }

    private List<String> texts(int events) throws SQLException {
        return read(as("eventsql_reader"), "orders", events).stream()
                .map(StoredEvent::text)
                .toList();
    }

    @Test
    void consumer_mayNotConsume_startsWhenGranted() throws SQLException {
        publish(owner, 0, 150);
        HikariDataSource pool = login("eventsql_reader");
        EventSql consumer = open(pool);
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            grant("eventsql_consumer", pool);
            handled.awaitSize(150).assertOnceAndInOrder();
        }
    }

    @Test
    void consumer_losesARightWhileItRuns_continuesWhenGranted() throws SQLException {
        EventSql consumer = as("eventsql_consumer");
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            publish(owner, 0, 50);
            handled.awaitSize(50);
            Sql.execute(
                    ownerPool,
                    "REVOKE SELECT ON eventsql.events_orders FROM eventsql_consumer",
                    "SELECT eventsql.apply_stream_grants_v1('orders')");
            publish(owner, 50, 150);
            Sql.execute(
                    ownerPool,
                    "GRANT SELECT ON eventsql.events_orders TO eventsql_consumer",
                    "SELECT eventsql.apply_stream_grants_v1('orders')");
            handled.awaitSize(150).assertOnceAndInOrder();
        }
    }

    @Test
    void subscribe_deadLetterStreamIsMissing_errorNamesRoleAndRemedy() throws SQLException {
        EventSql consumer = as("eventsql_consumer");
        ConsumerSpec spec = ConsumerSpec.of("orders", "c")
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("missing");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> consumer.subscribe(spec, event -> {}))
                .withMessageContaining("missing")
                .withMessageContaining("Role login_")
                .withMessageContaining("slots_of_new_stream_v1");

        owner.createStream(DEAD_LETTERS);
        assertThatCode(() -> consumer.subscribe(spec.withDeadLetterStream("orders_dead"), event -> {})
                        .close())
                .doesNotThrowAnyException();
    }
}
