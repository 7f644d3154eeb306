package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
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

    @Test
    void outbox_works() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            DataSource dataSource = cluster.dataSources().getFirst();
            EventSql eventSql = cluster.open();
            eventSql.createStream(StreamSpec.of("order_events"));
            Sql.execute(dataSource, "CREATE TABLE orders (id text PRIMARY KEY)");
            DSLContext dsl = DSL.using(dataSource, SQLDialect.POSTGRES);
            Handled handled = new Handled();
            eventSql.subscribe(ConsumerSpec.of("order_events", "mailer"), handled::add);

            // tag::outbox[]
            Outbox outbox = eventSql.outbox();
            try (Connection connection = dataSource.getConnection()) {
                connection.setAutoCommit(false);
                try (PreparedStatement order = connection.prepareStatement("INSERT INTO orders (id) VALUES (?)")) {
                    order.setString(1, "order-4712");
                    order.executeUpdate();
                }
                outbox.publish(connection, "order_events", Event.ofText("order-4712", "{\"status\": \"new\"}"));
                connection.commit(); // both or neither
            }

            dsl.transaction(trx -> {
                trx.dsl().execute("INSERT INTO orders (id) VALUES (?)", "order-4713");
                outbox.publish(trx, "order_events", Event.ofText("order-4713", "{\"status\": \"new\"}"));
            });
            // end::outbox[]

            handled.awaitSize(2);
            assertThat(handled.events())
                    .extracting(StoredEvent::key)
                    .containsExactlyInAnyOrder("order-4712", "order-4713");
        }
    }
}
