package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.eventsql.ParkedEvent;
import io.eventsql.spring.EventPayloadException;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.NullUnmarked;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A listener never gets an object that lacks its values: the event's failure policy applies, without a retry. */
class HalfEmptyPayloadsIT extends ListenerFixture {
    @NullUnmarked
    record OrderPlaced(String id, Integer cents) {}

    @NullUnmarked
    record OrderPaid(String receipt) {}

    static class Placed {
        final Queue<OrderPlaced> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(OrderPlaced order) {
            got.add(order);
        }
    }

    @Test
    void payload_ofAnotherType_isNotHandled() {
        application().withBean(Placed.class).run(context -> {
            EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
            template.publish(stream, "k", new OrderPlaced("1", 1));
            template.publish(stream, "k", new OrderPaid("r"));
            template.publish(stream, "k", new OrderPlaced("2", 2));
            awaitLag(0);
            assertThat(context.getBean(Placed.class).got)
                    .containsExactly(new OrderPlaced("1", 1), new OrderPlaced("2", 2));
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .singleElement()
                    .satisfies(event -> {
                        assertThat(event.attempts()).isEqualTo(1);
                        assertThat(event.error())
                                .startsWith(EventPayloadException.class.getName())
                                .contains("OrderPaid", OrderPlaced.class.getName());
                    });
        });
    }

    static class PlacedBatches {
        final Queue<OrderPlaced> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", batch = true, failurePolicy = "dead-letter")
        void on(List<OrderPlaced> orders) {
            got.addAll(orders);
        }
    }

    @Test
    void payload_ofAnotherTypeInABatch_isNotHandled_andTheOthersAre() {
        application().withBean(PlacedBatches.class).run(context -> {
            EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
            template.publish(stream, "k", new OrderPlaced("1", 1));
            template.publish(stream, "k", new OrderPaid("r"));
            template.publish(stream, "k", new OrderPlaced("2", 2));
            awaitLag(0);
            assertThat(context.getBean(PlacedBatches.class).got)
                    .containsExactly(new OrderPlaced("1", 1), new OrderPlaced("2", 2));
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).hasSize(1);
        });
    }

    @NullMarked
    record Line(String article, int count) {}

    @NullMarked
    record Order(
            String id,
            @JsonProperty("total_cents") long cents,
            @Nullable String note,
            List<Line> lines) {}

    record Marked(@JsonProperty(required = true) @Nullable String id) {}

    static class Complete {
        final Queue<Object> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(Order order) {
            got.add(order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "marked", failurePolicy = "dead-letter")
        void on(Marked marked) {
            got.add(marked);
        }
    }

    @Test
    void payload_withoutWhatItMustHave_isNotHandled() {
        Map<String, String> missingByJson = Map.of(
                "{\"total_cents\": 1, \"lines\": []}", "id",
                "{\"id\": null, \"total_cents\": 1, \"lines\": []}", "id",
                "{\"id\": \"1\", \"lines\": []}", "total_cents",
                "{\"id\": \"1\", \"total_cents\": null, \"lines\": []}", "total_cents",
                "{\"id\": \"1\", \"total_cents\": 1}", "lines",
                "{\"id\": \"1\", \"total_cents\": 1, \"lines\": [{\"article\": \"a\", \"count\": 1}, {\"article\": \"b\"}]}",
                        "lines[1].count");
        publish(missingByJson.keySet().toArray(String[]::new));
        application().withBean(Complete.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Complete.class).got).doesNotHaveAnyElementsOfTypes(Order.class);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .hasSize(missingByJson.size())
                    .allSatisfy(event -> {
                        assertThat(event.attempts()).isEqualTo(1);
                        assertThat(event.error())
                                .contains(EventPayloadException.class.getName(), Order.class.getName())
                                .contains(
                                        "(at " + missingByJson.get(event.event().text()) + ")");
                    });
        });
    }

    @Test
    void payload_withoutAPropertyThatJacksonRequires_isNotHandled() {
        publish("{}");
        publish("{\"id\": \"1\"}");
        application().withBean(Complete.class).run(context -> {
            awaitLag("marked", 0);
            assertThat(context.getBean(Complete.class).got).containsExactly(new Marked("1"));
            assertThat(eventSql.consumer(stream, "marked").parkedEvents(10))
                    .extracting(ParkedEvent::attempts)
                    .containsExactly(1);
        });
    }

    @Test
    void payload_withoutWhatItMayLack_isHandled() {
        publish("{\"id\": \"1\", \"total_cents\": 2, \"lines\": []}");
        publish("{\"id\": \"2\", \"total_cents\": 2, \"lines\": [], \"note\": null, \"unknown\": 3}");
        application().withBean(Complete.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Complete.class).got)
                    .contains(new Order("1", 2, null, List.of()), new Order("2", 2, null, List.of()));
        });
    }

    /** A name from outside must not decide which code is loaded. */
    @Test
    void header_withTheNameOfAClass_isNotLoaded() {
        publish("{\"id\": \"1\", \"cents\": 1}", Map.of("eventsql-type", NeverLoaded.class.getName()));
        application().withBean(Placed.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Placed.class).got).isEmpty();
            assertThat(LOADED).isEmpty();
        });
    }

    private static final Queue<String> LOADED = new ConcurrentLinkedQueue<>();

    static class NeverLoaded {
        static {
            LOADED.add("loaded");
        }
    }
}
