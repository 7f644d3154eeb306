package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.Test;

/** The code of README and docs, compiled and run: {@link ReadmeTest} compares the tagged regions with the pages. */
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

            assertThat(handled.await(120, TimeUnit.SECONDS)).isTrue();
            assertThat(position.offset()).isZero();

            // tag::close[]
            mailer.close(); // commits the offsets: the next start resumes there
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
            // end::outbox[]

            // tag::outbox-jooq[]
            dsl.transaction(trx -> {
                trx.dsl().execute("INSERT INTO orders (id) VALUES (?)", "order-4713");
                outbox.publish(trx, "order_events", Event.ofText("order-4713", "{\"status\": \"new\"}"));
            });
            // end::outbox-jooq[]

            handled.awaitSize(2);
            assertThat(handled.events())
                    .extracting(StoredEvent::key)
                    .containsExactlyInAnyOrder("order-4712", "order-4713");
        }
    }

    @Test
    void consumers_work() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            cluster.execute("CREATE TABLE stock (left_over int)", "INSERT INTO stock VALUES (10)");
            EventSql eventSql = cluster.open();
            eventSql.createStream(StreamSpec.of("order_events"));
            eventSql.publisher().publish("order_events", Event.ofText("order-4711", "{}"));

            // tag::handler[]
            ConsumerSpec mailer = ConsumerSpec.of("order_events", "mailer")
                    .withRetry(
                            RetryPolicy.defaults().withMaxAttempts(5).withFatal(Set.of(IllegalArgumentException.class)))
                    .withFailurePolicy(FailurePolicy.PARK_KEY);
            eventSql.subscribe(mailer, event -> send(event)); // at least once
            // end::handler[]

            // tag::transactional-handler[]
            eventSql.subscribeTransactional(ConsumerSpec.of("order_events", "stock"), (event, connection) -> {
                try (PreparedStatement update =
                        connection.prepareStatement("UPDATE stock SET left_over = left_over - 1")) {
                    update.execute(); // committed together with the offset: exactly once
                }
            });
            // end::transactional-handler[]
            await().until(() ->
                    eventSql.positions("order_events", "stock").stream().allMatch(p -> p.lag() == 0));
            await().until(() -> SENT.get() == 1);

            // tag::control[]
            ConsumerControl control = eventSql.consumer("order_events", "mailer");
            control.state().forEach(System.out::println); // lag, member, lease, error, parked keys of each partition
            control.parkedEvents(100).forEach(System.out::println); // the events that could not be handled
            control.redrive(); // sends them to the handler again, in order
            control.seek(StartPosition.at(Instant.now().minus(Duration.ofHours(1)))); // replays the last hour
            // end::control[]
            await().until(() -> SENT.get() == 2);
            assertThat(Sql.queryLong(cluster.dataSources().getFirst(), "SELECT left_over FROM stock"))
                    .isEqualTo(9);
        }
    }

    private static final AtomicInteger SENT = new AtomicInteger();

    private static void send(StoredEvent event) {
        assertThat(event.text()).isEqualTo("{}");
        SENT.incrementAndGet();
    }
}
