package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.spring.test.Shop.OrderPlaced;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;

/** By default an event is retried without limit: the test says why it is not handled. */
@EventSqlTest
class RetriedListenerIT {
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
}
