package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.spring.test.Shop.OrderPlaced;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.jdbc.core.JdbcTemplate;

/** A listener's test needs a few lines. */
@EventSqlTest
class EventSqlTestIT {
    @Autowired
    private Shop.Orders orders;

    @Autowired
    private Shop.Mailer mailer;

    @Autowired
    private EventSqlTestSupport events;

    @Autowired
    private EventSql eventSql;

    @Autowired
    private JdbcTemplate jdbc;

    @AfterEach
    void dropRefusedEvents() {
        jdbc.update("DELETE FROM eventsql.outbox_refused");
    }

    @Test
    void awaitHandled_publishedInATransaction_isHandledAfterIt() {
        IntStream.range(0, 50).forEach(i -> orders.place(new OrderPlaced("4711-" + i, 1)));

        events.awaitHandled("orders", "mailer");

        assertThat(mailer.mails).contains("4711-0", "4711-49").hasSizeGreaterThanOrEqualTo(50);
    }

    @Test
    void read_isInOrder_andTyped() {
        orders.place(new OrderPlaced("4712", 1));
        orders.place(new OrderPlaced("4712", 2));

        assertThat(events.read("orders", OrderPlaced.class))
                .filteredOn(order -> order.id().equals("4712"))
                .extracting(OrderPlaced::items)
                .containsExactly(1, 2);
        assertThat(events.read("orders")).extracting(StoredEvent::key).contains("4712");
    }

    @Test
    void read_streamHasGrown_hasTheEventsOfNewPartitions() {
        eventSql.createStream(StreamSpec.of("grown").withPartitions(1));
        eventSql.grow("grown", 2);
        IntStream.range(0, 20).forEach(i -> eventSql.publisher().publish("grown", Event.ofText("key-" + i, "x")));

        assertThat(events.read("grown"))
                .hasSize(20)
                .extracting(StoredEvent::partition)
                .contains(0, 1);
    }

    @Test
    void awaitHandled_eventRefused_failsWithItsOutbox() {
        jdbc.update("INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                + " SELECT last_value, 'missing', '4711', convert_to('x', 'UTF8'), 0 FROM eventsql.outbox_ring");
        eventSql.outbox().committed();

        assertThatThrownBy(() -> events.awaitHandled("orders", "mailer"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("Outbox " + eventSql.outbox().names().getFirst() + " has refused 1 events");
    }

    @Test
    void awaitHandled_consumerNeverStarted_failsWithThatReason() {
        assertThatThrownBy(() -> events.awaitHandled("orders", "unknown", Duration.ofMillis(50)))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("After 50 ms consumer unknown of stream orders was never started");
    }

    @Test
    void database_isFast_andOwn() {
        assertThat(jdbc.queryForObject("SHOW fsync", String.class)).isEqualTo("off");
        assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                .endsWith("eventsqltestit");
    }

    @Nested
    class Inside {
        @Test
        void nestedClass_sharesTheDatabase() {
            assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                    .endsWith("eventsqltestit");
        }
    }
}
