package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** The template in a plain Spring application. */
class EventSqlTemplateWithoutBootIT {
    private static TestPools pools;
    private static AnnotationConfigApplicationContext application;

    /** The offset of the first event of the test. */
    private long from;

    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement
    static class App {
        @Bean
        PlatformTransactionManager transactionManager(DataSource dataSource) {
            return new DataSourceTransactionManager(dataSource);
        }

        @Bean
        EventSql eventSql(DataSource dataSource) {
            EventSql eventSql = EventSql.builder(dataSource).build();
            eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
            return eventSql;
        }

        @Bean
        EventSqlTemplate eventSqlTemplate(EventSql eventSql) {
            return EventSqlTemplate.of(eventSql);
        }

        @Bean
        static TransactionTracker transactionTracker() {
            return new TransactionTracker();
        }

        @Bean
        Orders orders(EventSqlTemplate events) {
            return new Orders(events);
        }
    }

    static class Orders {
        private final EventSqlTemplate events;

        Orders(EventSqlTemplate events) {
            this.events = events;
        }

        @Transactional
        public void place(String id, boolean valid) {
            assertThat(events.publish("orders", id, Map.of("id", id))).isEmpty();
            assertThat(events.publishAll("orders", List.of(OutgoingEvent.of(id, "second"))))
                    .isEmpty();
            if (!valid) {
                throw new IllegalStateException("thrown by the test");
            }
        }

        @Transactional
        public void placeAndPublishAfterCommit(String id) {
            events.publish("orders", id, "in the transaction");
            TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                @Override
                public void afterCommit() {
                    assertThat(events.publish("orders", id, "after the commit")).isPresent();
                }
            });
        }
    }

    @BeforeAll
    static void start() {
        pools = new TestPools();
        application = new AnnotationConfigApplicationContext();
        application.registerBean(DataSource.class, () -> pools.pool(TestServer.newDatabase()));
        application.register(App.class);
        application.refresh();
    }

    @AfterAll
    static void stop() {
        application.close();
        pools.close();
    }

    @BeforeEach
    void skipEventsOfOtherTests() {
        from = stored().size();
    }

    private List<StoredEvent> stored() {
        return application.getBean(EventSql.class).read(new EventPosition("orders", 0, 0, from), 100);
    }

    @Test
    void publish_insideAndOutsideOfTransactions_isPartOfThem() {
        Orders orders = application.getBean(Orders.class);
        EventSqlTemplate events = application.getBean(EventSqlTemplate.class);

        assertThatThrownBy(() -> orders.place("4711", false)).hasMessage("thrown by the test");
        orders.place("4712", true);
        await().until(() -> stored().size() == 2);
        assertThat(events.publish("orders", "4713", Map.of("id", "4713")))
                .contains(new EventPosition("orders", 0, 0, from + 2));
        assertThat(events.publishAll("orders", List.of(OutgoingEvent.of("4714", "x"))))
                .containsExactly(new EventPosition("orders", 0, 0, from + 3));

        assertThat(stored()).extracting(StoredEvent::key).containsExactly("4712", "4712", "4713", "4714");
        assertThat(stored().getFirst().text()).isEqualTo("{\"id\":\"4712\"}");
    }

    @Test
    void publish_afterCommit_isNotPartOfTheTransaction() {
        application.getBean(Orders.class).placeAndPublishAfterCommit("4711");

        await().until(() -> stored().size() == 2);
        assertThat(stored())
                .extracting(StoredEvent::text)
                .containsExactlyInAnyOrder("in the transaction", "after the commit");
    }

    record Order(String id) {}

    @EventType(value = "order-paid", version = 2)
    record Paid(String id) {}

    @Test
    void publish_object_storesItsType() {
        EventSqlTemplate events = application.getBean(EventSqlTemplate.class);
        events.publish("orders", new Order("4711"));
        events.publish("orders", new Paid("4711"));
        events.publish("orders", OutgoingEvent.of(new Order("4712")).withHeader(EventTypes.TYPE_HEADER, "mine"));

        assertThat(stored())
                .extracting(event -> event.headers().get("eventsql-type"))
                .containsExactly("Order", "order-paid", "mine");
        assertThat(stored())
                .extracting(event -> event.headers().get("eventsql-type-version"))
                .containsExactly(null, "2", null);
    }

    @Test
    void publish_unknownStream_fails() {
        assertThatThrownBy(() -> application.getBean(EventSqlTemplate.class).publish("invoices", "x"))
                .isInstanceOf(UnknownStreamException.class)
                .hasMessageContaining("invoices");
    }
}
