package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;

import io.cloudevents.CloudEvent;
import io.eventsql.Event;
import io.eventsql.StoredEvent;
import io.eventsql.spring.CloudEventHeaders;
import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlHeaders;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.OutgoingEvent;
import io.eventsql.spring.OutgoingEventCustomizer;
import io.eventsql.spring.Tombstone;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;

/** Listener methods that receive events without a value, and those that do not take them. */
class TombstonesIT extends ListenerFixture {
    record Order(String id) {}

    record Refund(String id) {}

    static class Recorder {
        private final Map<String, Queue<String>> got = new ConcurrentHashMap<>();

        void add(String consumer, @Nullable Object value) {
            got.computeIfAbsent(consumer, c -> new ConcurrentLinkedQueue<>()).add(String.valueOf(value));
        }

        List<String> of(String consumer) {
            return new ArrayList<>(got.getOrDefault(consumer, new ConcurrentLinkedQueue<>()));
        }
    }

    static class Taking extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "not_required")
        void notRequired(@Payload(required = false) Order order, @Header(EventSqlHeaders.KEY) String key) {
            add("not_required", key + " " + order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "nullable")
        void nullable(@Nullable Order order) {
            add("nullable", order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "optional")
        void optional(Optional<Order> order) {
            add("optional", order.isPresent());
        }

        @EventSqlListener(stream = "${stream}", consumer = "stored")
        void stored(StoredEvent event) {
            add("stored", event.isTombstone());
        }

        @EventSqlListener(stream = "${stream}", consumer = "message")
        void message(Message<StoredEvent> message) {
            add("message", message.getPayload().isTombstone());
        }

        @EventSqlListener(stream = "${stream}", consumer = "batch", batch = true)
        void batch(@Payload(required = false) List<Order> orders) {
            orders.forEach(order -> add("batch", order));
        }
    }

    @Test
    void tombstone_listenersThatTakeIt_receiveIt() {
        application().withBean(Taking.class).run(context -> {
            EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
            template.publish(stream, "k", new Order("1"));
            template.publishTombstone(stream, "k");
            Taking taking = context.getBean(Taking.class);
            for (String consumer : List.of("not_required", "nullable", "optional", "stored", "message", "batch")) {
                awaitLag(consumer, 0);
                assertThat(eventSql.consumer(stream, consumer).parkedEvents(10)).isEmpty();
            }
            assertThat(taking.of("not_required")).containsExactly("k Order[id=1]", "k null");
            assertThat(taking.of("nullable")).containsExactly("Order[id=1]", "null");
            assertThat(taking.of("optional")).containsExactly("true", "false");
            assertThat(taking.of("stored")).containsExactly("false", "true");
            assertThat(taking.of("message")).containsExactly("false", "true");
            assertThat(taking.of("batch")).containsExactly("Order[id=1]", "null");
        });
    }

    static class NotTaking extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "required", failurePolicy = "dead-letter")
        void required(Order order) {
            add("required", order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "bytes", failurePolicy = "dead-letter")
        void bytes(byte[] value) {
            add("bytes", value.length);
        }

        @EventSqlListener(stream = "${stream}", consumer = "message", failurePolicy = "dead-letter")
        void message(Message<Order> message) {
            add("message", message.getPayload());
        }

        @EventSqlListener(stream = "${stream}", consumer = "batch", batch = true, failurePolicy = "dead-letter")
        void batch(List<Order> orders) {
            orders.forEach(order -> add("batch", order));
        }

        @EventSqlListener(stream = "${stream}", consumer = "tombstones", failurePolicy = "dead-letter")
        void tombstones(Tombstone tombstone) {
            add("tombstones", tombstone);
        }
    }

    @Test
    void tombstone_listenersThatRequireAValue_goesTheFailurePolicysWayAtOnce() {
        application().withBean(NotTaking.class).run(context -> {
            EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
            template.publish(stream, OutgoingEvent.tombstone("k"));
            template.publish(stream, "k", new Order("1"));
            NotTaking listeners = context.getBean(NotTaking.class);
            for (String consumer : List.of("required", "bytes", "message", "batch")) {
                awaitLag(consumer, 0);
                assertThat(listeners.of(consumer)).hasSize(1);
                assertThat(eventSql.consumer(stream, consumer).parkedEvents(10))
                        .singleElement()
                        .satisfies(event -> {
                            assertThat(event.event().isTombstone()).isTrue();
                            assertThat(event.attempts()).isEqualTo(1);
                            assertThat(event.error()).contains("is a tombstone", "@Payload(required = false)");
                        });
            }
            awaitLag("tombstones", 0);
            assertThat(listeners.of("tombstones")).containsExactly("INSTANCE");
            assertThat(eventSql.consumer(stream, "tombstones").parkedEvents(10))
                    .singleElement()
                    .satisfies(event -> assertThat(event.error()).contains("has a value"));
        });
    }

    @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
    static class Typed extends Recorder {
        @EventSqlHandler
        void on(Order order) {
            add("c", order);
        }

        @EventSqlHandler
        void on(@Payload(required = false) Refund refund) {
            add("c", refund);
        }
    }

    static class TypedWithTombstones extends Typed {
        @EventSqlHandler
        void on(Tombstone tombstone, @Header(EventSqlHeaders.KEY) String key) {
            add("c", "deleted " + key);
        }
    }

    private void publishTyped(EventSqlTemplate template) {
        template.publish(stream, "k1", new Order("1"));
        template.publishTombstone(stream, "k1");
        template.publish(stream, OutgoingEvent.tombstone("k2").withHeader(EventTypes.TYPE_HEADER, "Refund"));
    }

    @Test
    void classLevel_tombstoneWithoutAMethodForIt_goesByItsTypeOrIsDeadLettered() {
        application().withBean(Typed.class).run(context -> {
            publishTyped(context.getBean(EventSqlTemplate.class));
            awaitLag(0);
            assertThat(context.getBean(Typed.class).of("c")).containsExactly("Order[id=1]", "null");
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .singleElement()
                    .satisfies(event -> assertThat(event.error()).contains("is a tombstone", "no method of"));
        });
    }

    @Test
    void classLevel_methodForTombstones_takesAll() {
        application().withBean(TypedWithTombstones.class).run(context -> {
            publishTyped(context.getBean(EventSqlTemplate.class));
            awaitLag(0);
            assertThat(context.getBean(TypedWithTombstones.class).of("c"))
                    .containsExactly("Order[id=1]", "deleted k1", "deleted k2");
        });
    }

    static class CloudEvents extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(CloudEvent event) {
            add("c", event.getType() + " " + (event.getData() == null));
        }
    }

    @Test
    void cloudEvents_tombstone_isOneWithoutData() {
        application()
                .withBean(CloudEvents.class)
                .withBean(
                        CloudEventHeaders.class,
                        () -> new CloudEventHeaders(
                                "/orders", EventTypes.ofCloudEvents("shop.", Map.of()), InstantSource.system()))
                .run(context -> {
                    EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
                    template.publish(stream, "k", "text");
                    template.publishTombstone(stream, "k");
                    awaitLag(0);
                    assertThat(context.getBean(CloudEvents.class).of("c"))
                            .containsExactly("shop.String false", "shop.Tombstone true");
                });
    }

    @Test
    void customizer_givesATombstoneAValue_nothingIsPublished() {
        OutgoingEventCustomizer careless =
                (name, payload, event) -> new Event(event.key(), event.value(), Map.of("h", "1"));
        application().withBean(OutgoingEventCustomizer.class, () -> careless).run(context -> {
            EventSqlTemplate template = context.getBean(EventSqlTemplate.class);
            assertThat(org.assertj.core.api.Assertions.catchThrowable(() -> template.publishTombstone(stream, "k")))
                    .hasMessageContaining("Nothing was published")
                    .hasMessageContaining("given the tombstone a value");
            assertThat(eventSql.read(new io.eventsql.EventPosition(stream, 0, 0, 0), 1))
                    .isEmpty();
        });
    }
}
