package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.spring.test.Shop.OrderPlaced;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.jdbc.core.JdbcTemplate;

/** A failing listener is reported at once, with its error; and the annotation together with {@code @SpringBootTest}. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.NONE,
        properties = {
            "spring.datasource.url=jdbc:postgresql://nowhere/none",
            "eventsql.streams.orders.partitions=1",
            "eventsql.listener.failure-policy=dead-letter",
            "eventsql.listener.max-attempts=1"
        })
@EmbeddedEventSql(durable = true)
class FailingListenerIT {
    @Autowired
    private Shop.Orders orders;

    @Autowired
    private EventSqlTestSupport events;

    @Autowired
    private JdbcTemplate jdbc;

    @Test
    void awaitHandled_eventParked_failsWithItsError() {
        orders.place(new OrderPlaced("4711", -1));

        assertThatThrownBy(() -> events.awaitHandled("orders", "mailer"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("thrown by the test");
        assertThat(events.awaitParked("orders", "mailer", 1))
                .singleElement()
                .satisfies(event -> assertThat(event.event().key()).isEqualTo("4711"));
    }

    @Test
    void database_isDurable_andAnother() {
        assertThat(jdbc.queryForObject("SHOW fsync", String.class)).isEqualTo("on");
        assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                .endsWith("failinglistenerit");
    }
}
