package io.eventsql.spring.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.spring.example.mail.MailService;
import io.eventsql.spring.example.mail.Mailer;
import io.eventsql.spring.example.orders.OrderPlaced;
import io.eventsql.spring.example.orders.OrderService;
import io.eventsql.spring.example.orders.Orders;
import io.eventsql.spring.fixture.TestServer;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.jdbc.core.JdbcTemplate;

/** The documented example: an order service writes an order and its event, a mail service handles the event. */
class TwoServicesIT {

    @Test
    void order_placed_isMailedByTheOtherApplication_rejectedOneIsNot() {
        String url = TestServer.newUrl();
        try (ConfigurableApplicationContext orderService = start(OrderService.class, url);
                ConfigurableApplicationContext mailService = start(MailService.class, url)) {
            orderService
                    .getBean(JdbcTemplate.class)
                    .execute("CREATE TABLE orders (id text PRIMARY KEY, cents int NOT NULL)");
            Orders orders = orderService.getBean(Orders.class);
            orders.place(new OrderPlaced("4711", 1_999));
            assertThatThrownBy(() -> orders.place(new OrderPlaced("4711", 2_999)))
                    .isInstanceOf(DuplicateKeyException.class);
            orders.place(new OrderPlaced("4712", 500));
            Mailer mailer = mailService.getBean(Mailer.class);
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(mailer.sent()).contains("Your order 4712"));
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() ->
                            assertThat(mailer.sent()).containsExactlyInAnyOrder("Your order 4711", "Your order 4712"));
        }
    }

    private static ConfigurableApplicationContext start(Class<?> application, String url) {
        return new SpringApplicationBuilder(application)
                .web(WebApplicationType.NONE)
                .run(
                        "--spring.datasource.url=" + url,
                        "--spring.datasource.username=" + TestServer.get().username(),
                        "--spring.datasource.password=" + TestServer.get().password(),
                        "--eventsql.streams.orders.partitions=2",
                        "--spring.jmx.enabled=false");
    }
}
