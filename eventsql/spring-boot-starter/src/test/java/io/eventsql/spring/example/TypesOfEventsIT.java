package io.eventsql.spring.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.example.billing.Billing;
import io.eventsql.spring.example.billing.BillingService;
import io.eventsql.spring.example.billing.OrderPaid;
import io.eventsql.spring.example.orders.OrderPlaced;
import io.eventsql.spring.fixture.TestServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** The documented example of a listener for events of several types. */
class TypesOfEventsIT {
    @Test
    void events_ofSeveralTypesAndVersions_goToTheirMethods() {
        try (ConfigurableApplicationContext application = start()) {
            EventSql eventSql = application.getBean(EventSql.class);
            assertThat(application.getBean(EventTypes.class).find("order-paid")).isEqualTo(OrderPaid.class);
            EventSqlTemplate.of(eventSql)
                    .publish("orders", "1", new OrderPlaced("1", 1)); // another application's class
            eventSql.publisher()
                    .publish(
                            "orders",
                            new Event(
                                    "1",
                                    "{\"id\": \"1\", \"cents\": 1}".getBytes(StandardCharsets.UTF_8),
                                    Map.of(EventTypes.TYPE_HEADER, "order-paid"))); // version 1
            eventSql.publisher().publish("orders", Event.ofText("1", "text"));
            application.getBean(EventSqlTemplate.class).publish("orders", "1", new OrderPaid("1", 2, "USD"));

            Billing billing = application.getBean(Billing.class);
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(billing.booked())
                            .containsExactly("invoice 1", "payment 1 EUR", "payment 1 USD"));
        }
    }

    private static ConfigurableApplicationContext start() {
        return new SpringApplicationBuilder(BillingService.class)
                .web(WebApplicationType.NONE)
                .run(
                        "--spring.datasource.url=" + TestServer.newUrl(),
                        "--spring.datasource.username=" + TestServer.get().username(),
                        "--spring.datasource.password=" + TestServer.get().password(),
                        "--eventsql.streams.orders.partitions=2",
                        "--spring.jmx.enabled=false");
    }
}
