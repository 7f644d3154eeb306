package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.spring.test.Shop.OrderPlaced;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * By default an event is retried without limit: the test says why it is not handled. The test's database has precedence over
 * other connection details, such as those of a {@code @ServiceConnection}.
 */
@EventSqlTest(properties = "eventsql.streams.orders.partitions=1")
class RetriedListenerIT {
    @TestConfiguration(proxyBeanMethods = false)
    static class Container {
        @Bean
        JdbcConnectionDetails containerConnectionDetails() {
            return new JdbcConnectionDetails() {
                @Override
                public String getUsername() {
                    return "unknown";
                }

                @Override
                public String getPassword() {
                    return "";
                }

                @Override
                public String getJdbcUrl() {
                    return "jdbc:postgresql://nowhere/none";
                }
            };
        }
    }

    @Autowired
    private Shop.Orders orders;

    @Autowired
    private EventSqlTestSupport events;

    @Test
    void awaitHandled_eventIsRetried_failsAfterTheTimeoutWithTheLastFailure() {
        orders.place(new OrderPlaced("4711", -1));

        assertThatThrownBy(() -> events.awaitHandled("orders", "mailer", Duration.ofSeconds(5)))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("consumer mailer has not handled 1 events of stream orders; attempt")
                .hasMessageContaining("java.lang.IllegalStateException: thrown by the test")
                .hasCauseInstanceOf(IllegalStateException.class);
    }

    @Test
    void dataSource_isTheEmbeddedDatabase(@Autowired JdbcTemplate jdbc) {
        assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                .endsWith("retriedlistenerit");
    }
}
