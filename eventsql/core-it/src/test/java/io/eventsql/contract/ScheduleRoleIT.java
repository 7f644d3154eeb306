package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Goal: a publisher schedules and cancels, the relay appends what is due, and a reader lists it, with no other right. */
class ScheduleRoleIT extends RolesFixture {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    /** As after an upgrade, until roles.sql is applied again. */
    @Test
    void relay_withoutRightsOnScheduledEvents_stillRelaysTheOutbox() throws SQLException {
        owner.close();
        Sql.execute(ownerPool, "REVOKE ALL ON eventsql.scheduled_event FROM eventsql_relay");
        EventSql reader = as("eventsql_reader");
        as("eventsql_relay");
        HikariDataSource login = login("eventsql_publisher");

        publishInTransactions(open(login), login, 100);

        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(reader.read(new EventPosition("orders", 0, 0, 0), 200))
                        .hasSize(100));
    }

    @Test
    void publisherSchedules_relayAppends_readerLists() throws SQLException {
        owner.close(); // would relay
        HikariDataSource login = login("eventsql_publisher");
        EventSql publisher = open(login);
        EventSql reader = as("eventsql_reader");
        EventSql relay = as("eventsql_relay", "eventsql_publisher");

        UUID cancelled = publisher
                .publisher()
                .schedule("orders", Event.ofText("no"), Instant.now().plusSeconds(600));
        publisher
                .publisher()
                .schedule("orders", Event.ofText("direct"), Instant.now().plusMillis(100));
        try (Connection transaction = login.getConnection()) {
            transaction.setAutoCommit(false);
            publisher.outbox().schedule(transaction, "orders", Event.ofText("outbox"), Instant.now());
            transaction.commit();
        }
        assertThat(reader.scheduledEvents("orders", null, 10)).isNotEmpty();
        assertThat(publisher.cancelScheduled(cancelled)).isTrue();

        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(reader.read(new EventPosition("orders", 0, 0, 0), 10))
                        .hasSize(2));
        assertThat(relay.scheduleBacklogs().getFirst().events()).isZero();
        for (String statement : new String[] {
            "SELECT * FROM eventsql.scheduled_event",
            "DELETE FROM eventsql.scheduled_event",
            "SELECT eventsql.delete_scheduled_v1('orders')",
            "TRUNCATE eventsql.scheduled_event_0"
        }) {
            assertDenied(login, statement);
        }
    }
}
