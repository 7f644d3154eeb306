package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.fixture.TestCluster;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** The README's quick start, compiled and run: what stands between the tags stands there. */
class QuickStartIT {

    @Test
    void quickStart_works() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            DataSource dataSource = cluster.dataSources().getFirst();
            CountDownLatch handled = new CountDownLatch(3);

            // tag::open[]
            EventSql eventSql = EventSql.builder(dataSource).build();
            eventSql.createStream(StreamSpec.of("order_events"));
            // end::open[]

            // tag::publish[]
            EventPublisher publisher = eventSql.publisher();
            EventPosition position = publisher.publish(
                    "order_events",
                    Event.ofText("order-4711", "{\"status\": \"paid\"}").withHeader("type", "order_paid"));
            publisher.publishAll(
                    "order_events",
                    List.of(
                            Event.ofText("order-4711", "{\"status\": \"packed\"}"),
                            Event.ofText("order-4711", "{\"status\": \"sent\"}")));
            // end::publish[]

            // tag::consume[]
            Subscription mailer = eventSql.subscribe(ConsumerSpec.of("order_events", "mailer"), event -> {
                System.out.println(event.key() + " at offset " + event.offset() + ": " + event.text());
                // end::consume[]
                handled.countDown();
                // tag::consume[]
            });
            // end::consume[]

            assertThat(handled.await(30, TimeUnit.SECONDS)).isTrue();
            assertThat(position.offset()).isZero();

            // tag::close[]
            mailer.close(); // commits what was handled: the next start goes on there
            eventSql.close();
            // end::close[]
        }
    }
}
