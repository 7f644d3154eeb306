package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.StartPosition;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventType;
import io.eventsql.spring.EventUpcaster;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Events of earlier versions of a type, handled and replayed as its current version. */
class UpcastersIT extends ListenerFixture {
    /** Version 1 had {@code price} in euros, version 2 {@code cents}, version 3 a {@code currency} next to them. */
    @NullMarked
    @EventType(value = "order-placed", version = 3, formerNames = "OrderPlaced")
    record OrderPlaced(String id, long cents, String currency) {}

    record Step(Class<?> type, int fromVersion, UnaryOperator<JsonNode> conversion) implements EventUpcaster {
        @Override
        public JsonNode upcast(JsonNode payload) {
            return conversion.apply(payload);
        }
    }

    private static Step priceToCents() {
        return new Step(OrderPlaced.class, 1, payload -> {
            ObjectNode order = (ObjectNode) payload;
            return order.put("cents", Math.round(order.remove("price").asDouble() * 100));
        });
    }

    private static Step withCurrency() {
        return new Step(OrderPlaced.class, 2, payload -> ((ObjectNode) payload).put("currency", "EUR"));
    }

    static class Orders {
        final Queue<OrderPlaced> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(OrderPlaced order) {
            got.add(order);
        }
    }

    private void publishOldEvents() {
        publish("{\"id\": \"0\", \"price\": 1.5}"); // before types were stored
        publish("{\"id\": \"1\", \"price\": 2.5}", Map.of("eventsql-type", "OrderPlaced"));
        publish(
                "{\"id\": \"2\", \"cents\": 350}",
                Map.of("eventsql-type", "order-placed", "eventsql-type-version", "2"));
    }

    @Test
    void oldEvents_areHandledAsTheCurrentVersion_andAgainWhenReplayed() {
        publishOldEvents();
        application()
                .withBean("cents", EventUpcaster.class, UpcastersIT::priceToCents)
                .withBean("currency", EventUpcaster.class, UpcastersIT::withCurrency)
                .withBean(Orders.class)
                .run(context -> {
                    OrderPlaced current = new OrderPlaced("3", 450, "USD");
                    context.getBean(EventSqlTemplate.class).publish(stream, "k", current);
                    List<OrderPlaced> all = List.of(
                            new OrderPlaced("0", 150, "EUR"),
                            new OrderPlaced("1", 250, "EUR"),
                            new OrderPlaced("2", 350, "EUR"),
                            current);
                    Queue<OrderPlaced> got = context.getBean(Orders.class).got;
                    await().untilAsserted(() -> assertThat(got).containsExactlyElementsOf(all));
                    got.clear();

                    eventSql.consumer(stream, "c").seek(StartPosition.EARLIEST);

                    await().untilAsserted(() -> assertThat(got).containsExactlyElementsOf(all));
                });
    }

    @Test
    void version_thatCannotBeConverted_followsThePolicyAtOnce() {
        publishOldEvents();
        publish("{}", Map.of("eventsql-type", "order-placed", "eventsql-type-version", "4"));
        publish("{}", Map.of("eventsql-type", "order-placed", "eventsql-type-version", "first"));
        application()
                .withBean(
                        "cents",
                        EventUpcaster.class,
                        () -> new Step(OrderPlaced.class, 1, payload -> {
                            throw new IllegalStateException("thrown by the test");
                        }))
                .withBean(Orders.class)
                .run(context -> {
                    awaitLag(0);
                    assertThat(context.getBean(Orders.class).got).isEmpty();
                    List<ParkedEvent> parked = eventSql.consumer(stream, "c").parkedEvents(10);
                    assertThat(parked).extracting(ParkedEvent::attempts).containsOnly(1);
                    assertThat(parked.get(0).error()).contains("version 1", "thrown by the test");
                    assertThat(parked.get(2).error()).contains("no EventUpcaster converts version 2");
                    assertThat(parked.get(3).error()).contains("version 4", "versions up to 3");
                    assertThat(parked.get(4).error()).contains("version first");
                });
    }

    @Test
    void upcasters_thatContradictEachOther_areRejectedAtStart() {
        application()
                .withBean("one", EventUpcaster.class, UpcastersIT::withCurrency)
                .withBean("two", EventUpcaster.class, UpcastersIT::withCurrency)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("both convert version 2"));
        application()
                .withBean("one", EventUpcaster.class, () -> new Step(OrderPlaced.class, 3, payload -> payload))
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("has version 3"));
    }
}
