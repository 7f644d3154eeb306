package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;

import io.cloudevents.CloudEvent;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlHeaders;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlListenerContainer;
import io.eventsql.spring.EventTypes;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.springframework.aop.framework.autoproxy.BeanNameAutoProxyCreator;
import org.springframework.core.annotation.AliasFor;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;

/** Parameters of listener methods, and the beans that may declare them. */
class ListenerMethodsIT extends ListenerFixture {
    private static final String FIRST = "{\"id\":\"a\",\"amount\":1}";
    private static final String SECOND = "{\"id\":\"b\",\"amount\":2}";
    private static final OrderPlaced A = new OrderPlaced("a", 1);
    private static final OrderPlaced B = new OrderPlaced("b", 2);

    record OrderPlaced(String id, int amount) {}

    /** Collects the arguments of methods, by the consumer's name. */
    static class Recorder {
        private final Map<String, Queue<Object>> got = new ConcurrentHashMap<>();

        void add(String consumer, Object... values) {
            got.computeIfAbsent(consumer, c -> new ConcurrentLinkedQueue<>()).addAll(List.of(values));
        }

        void addAll(String consumer, Collection<?> values) {
            add(consumer, values.toArray());
        }

        List<Object> of(String consumer) {
            return new ArrayList<>(got.getOrDefault(consumer, new ConcurrentLinkedQueue<>()));
        }
    }

    static class Singles extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "payload")
        void payload(OrderPlaced order) {
            add("payload", order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "stored")
        void stored(StoredEvent event, EventPosition position) {
            add("stored", event.text(), event.position().equals(position));
        }

        @EventSqlListener(stream = "${stream}", consumer = "text")
        void text(String text) {
            add("text", text);
        }

        @EventSqlListener(stream = "${stream}", consumer = "bytes")
        void bytes(byte[] bytes) {
            add("bytes", bytes.length);
        }

        @EventSqlListener(stream = "${stream}", consumer = "tree")
        void map(Map<String, Object> order) {
            add("tree", order.get("amount"));
        }

        @EventSqlListener(stream = "${stream}", consumer = "header")
        void header(
                @Header("type") String type,
                @Header("id") String id,
                @Header(EventSqlHeaders.OFFSET) long offset,
                @Header(EventSqlHeaders.KEY) String key,
                @Header("missing") Optional<String> missing,
                @Header("count") int count,
                OrderPlaced order) {
            add("header", type, id, offset, key, missing.isPresent(), count, order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "headers")
        void headers(@Headers Map<String, String> own, @Headers Map<String, Object> all, MessageHeaders same) {
            add("headers", own, all.get("type"), all.get(EventSqlHeaders.PUBLISHED_AT) instanceof Instant);
            add("headers", all.equals(same));
        }

        @EventSqlListener(stream = "${stream}", consumer = "message")
        void message(Message<OrderPlaced> message) {
            add("message", message.getPayload(), message.getHeaders().get("type"));
        }
    }

    @Test
    void single_parametersOfAllKinds_areResolved() {
        Map<String, String> headers = Map.of("type", "placed", "id", "7", "count", "3");
        publish(FIRST, headers);
        application().withBean(Singles.class).run(context -> {
            Singles got = context.getBean(Singles.class);
            List.of("payload", "stored", "text", "bytes", "tree", "header", "headers", "message")
                    .forEach(consumer -> awaitLag(consumer, 0));
            assertThat(got.of("payload")).containsExactly(A);
            assertThat(got.of("stored")).containsExactly(FIRST, true);
            assertThat(got.of("text")).containsExactly(FIRST);
            assertThat(got.of("bytes")).containsExactly(FIRST.length());
            assertThat(got.of("tree")).containsExactly(1);
            assertThat(got.of("header")).containsExactly("placed", "7", 0L, "key", false, 3, A);
            assertThat(got.of("headers")).containsExactly(headers, "placed", true, true);
            assertThat(got.of("message")).containsExactly(A, "placed");
        });
    }

    static class Batches extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "payload", batch = true)
        void payload(List<OrderPlaced> orders) {
            addAll("payload", orders);
        }

        @EventSqlListener(stream = "${stream}", consumer = "wildcard", batch = true)
        void wildcard(@Payload List<? extends OrderPlaced> orders) {
            addAll("wildcard", orders);
        }

        @EventSqlListener(stream = "${stream}", consumer = "stored", batch = true)
        void stored(List<StoredEvent> events, List<EventPosition> positions) {
            addAll("stored", events.stream().map(StoredEvent::text).toList());
            add("stored", positions.getLast().offset());
        }

        @EventSqlListener(stream = "${stream}", consumer = "text", batch = true)
        void text(List<String> texts) {
            addAll("text", texts);
        }

        @EventSqlListener(stream = "${stream}", consumer = "bytes", batch = true)
        void bytes(List<byte[]> bytes) {
            addAll("bytes", bytes.stream().map(b -> b.length).toList());
        }

        @EventSqlListener(stream = "${stream}", consumer = "headers", batch = true)
        void headers(
                @Header("type") List<String> types,
                @Header("count") List<Integer> counts,
                @Headers List<Map<String, String>> headers,
                List<OrderPlaced> orders) {
            addAll("headers", types);
            addAll("headers", counts);
            addAll("headers", headers);
            addAll("headers", orders);
        }

        @EventSqlListener(stream = "${stream}", consumer = "message", batch = true)
        void message(List<Message<OrderPlaced>> messages) {
            addAll("message", messages.stream().map(Message::getPayload).toList());
        }
    }

    @Test
    void batch_parametersOfAllKinds_areLists() {
        Map<String, String> first = Map.of("type", "x", "count", "1");
        Map<String, String> second = Map.of("type", "y", "count", "2");
        publish(FIRST, first);
        publish(SECOND, second);
        application().withBean(Batches.class).run(context -> {
            Batches got = context.getBean(Batches.class);
            List.of("payload", "wildcard", "stored", "text", "bytes", "headers", "message")
                    .forEach(consumer -> awaitLag(consumer, 0));
            assertThat(got.of("payload")).containsExactly(A, B);
            assertThat(got.of("wildcard")).containsExactly(A, B);
            assertThat(got.of("stored")).containsExactly(FIRST, SECOND, 1L);
            assertThat(got.of("text")).containsExactly(FIRST, SECOND);
            assertThat(got.of("bytes")).containsExactly(FIRST.length(), SECOND.length());
            assertThat(got.of("headers")).containsExactly("x", "y", 1, 2, first, second, A, B);
            assertThat(got.of("message")).containsExactly(A, B);
        });
    }

    static class OfAnyType extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "order")
        void order(OrderPlaced order) {
            add("order", order);
        }

        @EventSqlListener(stream = "${stream}", consumer = "optional")
        void optional(Optional<OrderPlaced> order) {
            add("optional", order.orElseThrow());
        }

        @EventSqlListener(stream = "${stream}", consumer = "object")
        void object(Object payload) {
            add("object", payload);
        }

        @EventSqlListener(stream = "${stream}", consumer = "optional_object")
        void optionalObject(Optional<Object> payload) {
            add("optional_object", payload.orElseThrow());
        }

        @EventSqlListener(stream = "${stream}", consumer = "record")
        void anyRecord(Record payload) {
            add("record", payload);
        }

        @EventSqlListener(stream = "${stream}", consumer = "objects", batch = true)
        void objects(List<Object> payloads) {
            addAll("objects", payloads);
        }
    }

    @Test
    void payload_ofAParameterThatTakesAnyType_hasItsStoredType() {
        publish(FIRST, Map.of(EventTypes.TYPE_HEADER, "OrderPlaced"));
        application().withBean(OfAnyType.class).run(context -> {
            OfAnyType got = context.getBean(OfAnyType.class);
            for (String consumer : List.of("order", "optional", "object", "optional_object", "record", "objects")) {
                awaitLag(consumer, 0);
                assertThat(got.of(consumer)).as(consumer).containsExactly(A);
            }
        });
    }

    static class CloudEvents extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "cloud")
        void cloudEvent(CloudEvent event, OrderPlaced order) {
            add("cloud", event.getType(), order);
        }
    }

    @Test
    void cloudEvent_nextToItsPayload_isResolved() {
        publish(FIRST, Map.of("ce_specversion", "1.0", "ce_id", "1", "ce_source", "/shop", "ce_type", "OrderPlaced"));
        application().withBean(CloudEvents.class).run(context -> {
            awaitLag("cloud", 0);
            assertThat(context.getBean(CloudEvents.class).of("cloud")).containsExactly("OrderPlaced", A);
        });
    }

    /** A composed annotation. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @EventSqlListener(stream = "${stream}", consumer = "overridden")
    @interface OnOrder {
        @AliasFor(annotation = EventSqlListener.class, attribute = "consumer")
        String value();
    }

    abstract static class OnPayload<T> extends Recorder {
        @OnOrder("composed")
        void on(T payload) {
            add("composed", payload);
        }
    }

    static class OnOrders extends OnPayload<OrderPlaced> {
        @EventSqlListener(stream = "${stream}", consumer = "one")
        @EventSqlListener(stream = "${stream}", consumer = "two")
        void twice(OrderPlaced order, @Header("type") String type) {
            add(type, order);
        }
    }

    @Test
    void annotation_composedInheritedRepeated_isFound() {
        publish(FIRST, Map.of("type", "t"));
        application().withBean(OnOrders.class).run(context -> {
            List.of("composed", "one", "two").forEach(consumer -> awaitLag(consumer, 0));
            assertThat(context.getBean(OnOrders.class).of("composed")).containsExactly(A);
            assertThat(context.getBean(OnOrders.class).of("t")).containsExactly(A, A);
            assertThat(context.getBean(ListenerRegistry.class).containers())
                    .extracting(EventSqlListenerContainer::id)
                    .containsExactly(stream + "-composed", stream + "-one", stream + "-two");
        });
    }

    /** The interface that a JDK proxy implements. */
    interface Handler {
        void on(OrderPlaced order);
    }

    static class ProxiedByInterface implements Handler {
        static final Queue<OrderPlaced> GOT = new ConcurrentLinkedQueue<>();

        @Override
        @EventSqlListener(stream = "${stream}", consumer = "c")
        public void on(OrderPlaced order) {
            GOT.add(order);
        }
    }

    @Test
    void proxy_ofAnInterface_isCalled() {
        publish(FIRST);
        Queue<String> advised = new ConcurrentLinkedQueue<>();
        application()
                .withBean("handler", Handler.class, ProxiedByInterface::new)
                .withBean(BeanNameAutoProxyCreator.class, () -> proxies("handler", false))
                .withBean("advice", MethodInterceptor.class, () -> call -> {
                    advised.add(call.getMethod().getName());
                    return call.proceed();
                })
                .run(context -> {
                    awaitLag(0);
                    assertThat(ProxiedByInterface.GOT).containsExactly(A);
                    assertThat(advised).contains("on");
                });
    }

    static class ProxiedByClass extends Recorder {
        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(OrderPlaced order) {
            add("c", order);
        }
    }

    @Test
    void proxy_ofAClass_isCalled() {
        publish(FIRST);
        Queue<String> advised = new ConcurrentLinkedQueue<>();
        application()
                .withBean("handler", ProxiedByClass.class)
                .withBean(BeanNameAutoProxyCreator.class, () -> proxies("handler", true))
                .withBean("advice", MethodInterceptor.class, () -> call -> {
                    advised.add(call.getMethod().getName());
                    return call.proceed();
                })
                .run(context -> {
                    awaitLag(0);
                    assertThat(advised).contains("on");
                    assertThat(context.getBean(ProxiedByClass.class).of("c")).containsExactly(A);
                });
    }

    private static BeanNameAutoProxyCreator proxies(String bean, boolean ofClass) {
        BeanNameAutoProxyCreator creator = new BeanNameAutoProxyCreator();
        creator.setBeanNames(bean);
        creator.setInterceptorNames("advice");
        creator.setProxyTargetClass(ofClass);
        return creator;
    }

    @Test
    void bean_createdLate_isRegistered() {
        publish(FIRST);
        application()
                .withBean("late", ProxiedByClass.class, ProxiedByClass::new, bean -> bean.setLazyInit(true))
                .run(context -> {
                    ListenerRegistry registry = context.getBean(ListenerRegistry.class);
                    assertThat(registry.containers()).isEmpty();
                    ProxiedByClass late = context.getBean(ProxiedByClass.class);
                    awaitLag(0);
                    assertThat(late.of("c")).containsExactly(A);
                    assertThat(registry.container(stream + "-c").isRunning()).isTrue();
                });
    }
}
