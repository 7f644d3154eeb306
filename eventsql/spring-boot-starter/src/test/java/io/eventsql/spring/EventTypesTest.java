package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.EventPosition;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.core.ParameterizedTypeReference;

/** Names of types, and the types as which events are read. */
class EventTypesTest {
    record OrderPlaced(String id) {}

    static final class Other {
        record OrderPlaced(String id) {}
    }

    @EventType(value = "order-paid", version = 2, formerNames = "OrderSettled")
    record OrderPaid(String id) {}

    sealed interface Shipment {
        record Sent(String id) implements Shipment {}

        record Lost(String id) implements Shipment {}
    }

    interface Anything {}

    static class Customer {}

    record Wrapper<T>(T value) {}

    private final EventTypes types = new EventTypes(OrderPlaced.class, OrderPaid.class, Shipment.class);

    private static StoredEvent event(Map<String, String> headers) {
        return new StoredEvent(new EventPosition("orders", 0, 3, 77), null, new byte[0], headers, Instant.EPOCH);
    }

    private static StoredEvent typed(String name) {
        return event(Map.of("eventsql-type", name));
    }

    @Test
    void name_isTheSimpleName_unlessAnnotated() {
        assertThat(types.name(OrderPlaced.class)).isEqualTo("OrderPlaced");
        assertThat(types.name(OrderPaid.class)).isEqualTo("order-paid");
        assertThat(types.find("order-paid")).isEqualTo(OrderPaid.class);
        assertThat(types.find("OrderSettled")).isEqualTo(OrderPaid.class);
        assertThat(types.find("OrderPaid")).isNull();
        assertThat(types.find("Lost")).isEqualTo(Shipment.Lost.class);
        assertThat(types.find("Shipment")).isNull();
    }

    @Test
    void name_ofAnAnonymousClass_isThatOfItsSuperclass() {
        assertThat(types.name(new Customer() {}.getClass())).isEqualTo("Customer");
        assertThat(types.name(new Anything() {}.getClass())).isNull();
    }

    @Test
    void name_ofTheJdk_isNotStored() {
        for (Object payload : List.of("text", new byte[0], Map.of("a", 1), List.of(), 7, Instant.EPOCH)) {
            assertThat(types.name(payload.getClass())).as(payload.toString()).isNull();
        }
    }

    @Test
    void name_ofTwoClasses_isRejectedNamingBoth() {
        for (Runnable clash : List.<Runnable>of(
                () -> types.register(Other.OrderPlaced.class), () -> types.name(Other.OrderPlaced.class))) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(clash::run)
                    .withMessageContaining(OrderPlaced.class.getName())
                    .withMessageContaining(Other.OrderPlaced.class.getName())
                    .withMessageContaining("@EventType");
        }
        types.register(OrderPlaced.class); // again
    }

    @Test
    void register_whatIsNoPayload_isRejected() {
        for (Class<?> type : List.of(Anything.class, String.class, int.class)) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> types.register(type))
                    .withMessageContaining(type.getName());
        }
    }

    @Test
    void resolve_typeOfTheEvent_isTheOneRequestedOrASubtype() {
        assertThat(types.resolve(typed("OrderPlaced"), OrderPlaced.class, true)).isEqualTo(OrderPlaced.class);
        assertThat(types.resolve(typed("Lost"), Shipment.class, true)).isEqualTo(Shipment.Lost.class);
        assertThat(types.resolve(typed("Lost"), Object.class, true)).isEqualTo(Shipment.Lost.class);
        assertThat(types.resolve(typed("Lost"), String.class, true)).isEqualTo(String.class);
        assertThat(types.resolve(event(Map.of("ce_type", "Lost")), Shipment.class, true))
                .isEqualTo(Shipment.Lost.class);
        var wrapper = new ParameterizedTypeReference<Wrapper<String>>() {}.getType();
        types.register(Wrapper.class);
        assertThat(types.resolve(typed("Wrapper"), wrapper, true)).isEqualTo(wrapper);
    }

    @Test
    void resolve_anotherType_isRefused() {
        for (String name : List.of("order-paid", "Sent", "Unknown", "java.lang.Runtime")) {
            assertThatExceptionOfType(EventSerializationException.class)
                    .isThrownBy(() -> types.resolve(typed(name), OrderPlaced.class, false))
                    .withMessageContaining("partition=3, offset=77")
                    .withMessageContaining("'" + name + "'")
                    .withMessageContaining(OrderPlaced.class.getName());
        }
    }

    @Test
    void resolve_withoutAType_isTheOneRequested_unlessTheHeaderIsRequired() {
        assertThat(types.resolve(event(Map.of()), OrderPlaced.class, false)).isEqualTo(OrderPlaced.class);
        assertThat(types.resolve(event(Map.of()), String.class, true)).isEqualTo(String.class);
        assertThatExceptionOfType(EventSerializationException.class)
                .isThrownBy(() -> types.resolve(event(Map.of()), OrderPlaced.class, true))
                .withMessageContaining("eventsql-type");
    }

    /** Such as a schema's generated classes behind one interface: the serializer distinguishes them. */
    @Test
    void resolve_interfaceWithoutRegisteredClasses_isLeftToTheSerializer() {
        assertThat(types.resolve(typed("Unknown"), Anything.class, true)).isEqualTo(Anything.class);
    }

    @Test
    void cloudEvents_areFoundByPrefixAndByConfiguredType() {
        EventTypes cloud =
                EventTypes.ofCloudEvents("com.example.", Map.of(OrderPaid.class.getName(), "com.example.paid.v1"));
        cloud.register(OrderPlaced.class, OrderPaid.class);

        assertThat(cloud.cloudEventType(OrderPlaced.class)).isEqualTo("com.example.OrderPlaced");
        assertThat(cloud.cloudEventType(OrderPaid.class)).isEqualTo("com.example.paid.v1");
        assertThat(cloud.cloudEventType(String.class)).isEqualTo("com.example.String");
        assertThat(cloud.find("com.example.OrderPlaced")).isEqualTo(OrderPlaced.class);
        assertThat(cloud.find("com.example.paid.v1")).isEqualTo(OrderPaid.class);
    }
}
