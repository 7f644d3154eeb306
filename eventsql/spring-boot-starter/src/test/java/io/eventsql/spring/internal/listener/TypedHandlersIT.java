package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventType;
import io.eventsql.spring.InvalidListenerException;
import io.eventsql.spring.OutgoingEvent;
import java.sql.Connection;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;

/** Class-level listeners, sealed types, and events without a stored type. */
class TypedHandlersIT extends ListenerFixture {
    sealed interface Order {
        record Placed(String id) implements Order {}

        @EventType("order-paid")
        record Paid(String id) implements Order {}

        record Cancelled(String id) implements Order {}
    }

    record Unknown(String id) {}

    @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
    static class Billing {
        final Queue<String> got = new ConcurrentLinkedQueue<>();

        @EventSqlHandler
        void on(Order.Placed order) {
            got.add("placed " + order.id());
        }

        @EventSqlHandler
        void on(Order.Paid order, StoredEvent event) {
            got.add("paid " + order.id() + " " + event.headers().get("eventsql-type"));
        }

        @EventSqlHandler
        void on(Order order) {
            got.add("another " + order);
        }
    }

    static class WithDefault extends Billing {
        @EventSqlHandler(isDefault = true)
        void onOthers(StoredEvent event) {
            got.add("default " + event.text());
        }
    }

    private void publishAll(EventSqlTemplate template) {
        template.publishAll(
                stream,
                Stream.of(
                                new Order.Placed("1"),
                                new Order.Paid("1"),
                                new Order.Cancelled("1"),
                                new Unknown("2"),
                                "text")
                        .map(payload -> OutgoingEvent.of("k", payload))
                        .toList());
    }

    @Test
    void classLevel_eventsGoToTheMethodOfTheirType() {
        application().withBean(Billing.class).run(context -> {
            publishAll(context.getBean(EventSqlTemplate.class));
            awaitLag(0);
            assertThat(context.getBean(Billing.class).got)
                    .containsExactly("placed 1", "paid 1 order-paid", "another Cancelled[id=1]");
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .hasSize(2)
                    .allSatisfy(event -> {
                        assertThat(event.attempts()).isEqualTo(1);
                        assertThat(event.error()).contains("Billing", Order.Placed.class.getName());
                    })
                    .extracting(event -> event.error())
                    .anyMatch(error -> error.contains("'Unknown'"))
                    .anyMatch(error -> error.contains("has no type"));
        });
    }

    @Test
    void classLevel_defaultMethod_handlesAllOthers() {
        application().withBean(WithDefault.class).run(context -> {
            publishAll(context.getBean(EventSqlTemplate.class));
            awaitLag(0);
            assertThat(context.getBean(WithDefault.class).got)
                    .containsExactly(
                            "placed 1",
                            "paid 1 order-paid",
                            "another Cancelled[id=1]",
                            "default {\"id\":\"2\"}",
                            "default text");
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).isEmpty();
        });
    }

    @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter", transactional = true)
    static class Transactional {
        final Queue<String> got = new ConcurrentLinkedQueue<>();

        @EventSqlHandler
        void on(Order.Placed order, Connection connection) throws Exception {
            got.add(order.id() + " " + connection.getAutoCommit());
        }
    }

    @Test
    void classLevel_transactional_isCalledInTheTransaction() {
        application()
                .withConfiguration(AutoConfigurations.of(DataSourceTransactionManagerAutoConfiguration.class))
                .withBean(Transactional.class)
                .run(context -> {
                    context.getBean(EventSqlTemplate.class).publish(stream, new Order.Placed("1"));
                    publish("{\"id\": \"2\"}"); // without a type, and there is only one
                    awaitLag(0);
                    assertThat(context.getBean(Transactional.class).got).containsExactly("1 false", "2 false");
                });
    }

    static class Sealed {
        final Queue<Order> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(Order order) {
            got.add(order);
        }
    }

    @Test
    void sealedType_eventIsReadAsItsClass() {
        application().withBean(Sealed.class).run(context -> {
            publishAll(context.getBean(EventSqlTemplate.class));
            awaitLag(0);
            assertThat(context.getBean(Sealed.class).got)
                    .containsExactly(new Order.Placed("1"), new Order.Paid("1"), new Order.Cancelled("1"));
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).hasSize(2);
        });
    }

    static class OneType {
        final Queue<String> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(Order.Paid order) {
            got.add(order.id());
        }
    }

    @Test
    void withoutHeader_isReadAsTheListenersType_unlessTheHeaderIsRequired() {
        publish("{\"id\": \"1\"}");
        application().withBean(OneType.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(OneType.class).got).containsExactly("1");
        });
        publish("{\"id\": \"2\"}");
        publish("{\"id\": \"3\"}", Map.of("eventsql-type", "order-paid"));
        application()
                .withPropertyValues("eventsql.listener.require-type-header=true")
                .withBean(OneType.class)
                .run(context -> {
                    awaitLag(0);
                    assertThat(context.getBean(OneType.class).got).containsExactly("3");
                    assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                            .singleElement()
                            .satisfies(event -> assertThat(event.error()).contains("eventsql-type"));
                });
    }

    @Test
    void cloudEvents_areToldApartByTheirType() {
        application()
                .withPropertyValues(
                        "eventsql.cloud-events.source=/shop", "eventsql.cloud-events.type-prefix=com.example.")
                .withBean(Billing.class)
                .run(context -> {
                    EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
                    template.publish(stream, "k", new Order.Placed("1"));
                    template.publish(stream, "k", new Order.Paid("1"));
                    publish("{}", Map.of("ce_specversion", "1.0", "ce_type", "com.example.lost"));
                    awaitLag(0);
                    assertThat(context.getBean(Billing.class).got).containsExactly("placed 1", "paid 1 null");
                    assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                            .singleElement()
                            .satisfies(event -> assertThat(event.error()).contains("com.example.lost"));
                });
    }

    // Mistakes

    static final class Elsewhere {
        record Placed(String id) {}
    }

    static class TwoPlaced {
        @EventSqlListener(stream = "${stream}", consumer = "one")
        void on(Order.Placed order) {}

        @EventSqlListener(stream = "${stream}", consumer = "two")
        void on(Elsewhere.Placed order) {}
    }

    static class NoListener {
        @EventSqlHandler
        void on(Order.Placed order) {}
    }

    @EventSqlListener(stream = "${stream}", consumer = "c")
    static class NoHandler {}

    @EventSqlListener(stream = "${stream}", consumer = "c")
    static class TextHandler {
        @EventSqlHandler
        void on(String text) {}
    }

    @EventSqlListener(stream = "${stream}", consumer = "c")
    static class TwoDefaults {
        @EventSqlHandler(isDefault = true)
        void one(String text) {}

        @EventSqlHandler(isDefault = true)
        void two(String text) {}
    }

    @EventSqlListener(stream = "${stream}", consumer = "c")
    static class Twice {
        @EventSqlHandler
        void one(Order.Paid order) {}

        @EventSqlHandler
        void two(Order.Paid order) {}
    }

    @EventSqlListener(stream = "${stream}", consumer = "c", batch = true)
    static class Batch {
        @EventSqlHandler
        void on(List<Order.Paid> order) {}
    }

    @Test
    void mistakes_areRejectedAtStart() {
        assertRejected(TwoPlaced.class, Order.Placed.class.getName(), Elsewhere.Placed.class.getName());
        assertRejected(NoListener.class, "NoListener.on(Placed)", "its class is no listener");
        assertRejected(NoHandler.class, "NoHandler", "no handler");
        assertRejected(TextHandler.class, "TextHandler.on(String)", "no payload whose type");
        assertRejected(TwoDefaults.class, "second default");
        assertRejected(Twice.class, "takes Paid like");
        assertRejected(Batch.class, "takes batches");
    }

    private void assertRejected(Class<?> bean, String... message) {
        application().withBean(bean).run(context -> {
            assertThat(context).hasFailed();
            Throwable failure = context.getStartupFailure();
            while (!(failure instanceof InvalidListenerException) && failure.getCause() != null) {
                failure = failure.getCause();
            }
            assertThat(failure)
                    .as(bean.getSimpleName())
                    .isInstanceOf(InvalidListenerException.class)
                    .hasMessageContainingAll(message);
        });
    }
}
