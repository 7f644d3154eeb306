package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.core.ParameterizedTypeReference;
import tools.jackson.databind.json.JsonMapper;

/** Serialization of payloads, and deserialization of events. */
class JacksonEventSerializerTest {
    private final EventSerializer serializer = new JacksonEventSerializer(JsonMapper.shared());

    record Order(String id, int total) {}

    record Selfish(List<Object> others) {}

    @Test
    void serialize_object_isJsonWithContentType() {
        Event event = serializer.serialize("orders", OutgoingEvent.of("4711", new Order("4711", 3)));

        assertThat(event.key()).isEqualTo("4711");
        assertThat(event.text()).isEqualTo("{\"id\":\"4711\",\"total\":3}");
        assertThat(event.headers()).isEqualTo(Map.of("content-type", "application/json"));
    }

    @NullMarked
    record Basket(
            int total,
            String coupon,
            List<String> lines,
            @Nullable String note,
            Optional<String> gift) {}

    /** As Spring's {@code spring.jackson.default-property-inclusion} does. */
    @ParameterizedTest
    @EnumSource(names = {"NON_EMPTY", "NON_DEFAULT", "NON_NULL"})
    void serialize_mapperLeavesOutEmptyValues_whatIsRequiredIsWritten(JsonInclude.Include inclusion) {
        EventSerializer sparse = new JacksonEventSerializer(JsonMapper.builder()
                .changeDefaultPropertyInclusion(value -> value.withValueInclusion(inclusion))
                .build());
        Basket empty = new Basket(0, "", List.of(), null, Optional.empty());

        Event event = sparse.serialize("baskets", OutgoingEvent.of(empty));

        assertThat(event.text()).contains("total", "coupon", "lines").doesNotContain("note");
        assertThat(sparse.deserialize(stored(event.text()), Basket.class)).isEqualTo(empty);
    }

    @Test
    void serialize_withContentType_keepsIt() {
        OutgoingEvent event = OutgoingEvent.of(new Order("1", 1))
                .withHeader("content-type", "application/vnd.order+json")
                .withHeaders(Map.of("tenant", "a"));

        assertThat(serializer.serialize("orders", event).headers())
                .isEqualTo(Map.of("content-type", "application/vnd.order+json", "tenant", "a"));
    }

    @Test
    void serialize_textAndBytes_areUnchanged() {
        byte[] bytes = {0, 1, 2};

        Event text = serializer.serialize("orders", OutgoingEvent.of("plain text, ümläut"));
        Event binary = serializer.serialize("orders", OutgoingEvent.of(bytes));

        assertThat(text.text()).isEqualTo("plain text, ümläut");
        assertThat(text.headers()).isEmpty();
        assertThat(binary.value()).isSameAs(bytes);
        assertThat(binary.headers()).isEmpty();
    }

    @Test
    void serialize_payloadWithoutJson_isRejected() {
        List<Object> endless = new java.util.ArrayList<>();
        Selfish payload = new Selfish(endless);
        endless.add(payload);

        assertThatThrownBy(() -> serializer.serialize("orders", OutgoingEvent.of(payload)))
                .isInstanceOf(EventSerializationException.class)
                .hasMessageContaining("Selfish")
                .hasMessageContaining("orders");
    }

    @Test
    void deserialize_types_areThoseRequested() {
        StoredEvent one = stored("{\"id\":\"4711\",\"total\":3}");
        StoredEvent many = stored("[{\"id\":\"1\",\"total\":1},{\"id\":\"2\",\"total\":2}]");
        Type orders = new ParameterizedTypeReference<List<Order>>() {}.getType();

        assertThat(serializer.deserialize(one, Order.class)).isEqualTo(new Order("4711", 3));
        assertThat(serializer.deserialize(many, orders)).isEqualTo(List.of(new Order("1", 1), new Order("2", 2)));
        assertThat(serializer.deserialize(one, String.class)).isEqualTo(one.text());
        assertThat(serializer.deserialize(one, byte[].class)).isSameAs(one.value());
        assertThat(serializer.deserialize(stored("null"), Order.class)).isNull();
    }

    @Test
    void deserialize_otherType_namesTheEvent() {
        for (String value : List.of("", "{", "[]", "{\"total\":\"many\"}")) {
            assertThatThrownBy(() -> serializer.deserialize(stored(value), Order.class))
                    .as(value)
                    .isInstanceOf(EventSerializationException.class)
                    .hasMessageContaining("partition=3, offset=77")
                    .hasMessageContaining("Order");
        }
    }

    @Test
    void plain_object_isRejectedWithAdvice() {
        EventSerializer plain = new PlainEventSerializer();

        assertThat(plain.serialize("orders", OutgoingEvent.of("text")).text()).isEqualTo("text");
        assertThatThrownBy(() -> plain.serialize("orders", OutgoingEvent.of(new Order("1", 1))))
                .isInstanceOf(EventSerializationException.class)
                .hasMessageContaining("spring-boot-starter-jackson");
        assertThatThrownBy(() -> plain.deserialize(stored("{}"), Order.class))
                .isInstanceOf(EventSerializationException.class)
                .hasMessageContaining("spring-boot-starter-jackson");
    }

    private static StoredEvent stored(String text) {
        return new StoredEvent(
                new EventPosition("orders", 0, 3, 77),
                null,
                text.getBytes(java.nio.charset.StandardCharsets.UTF_8),
                Map.of(),
                Instant.EPOCH);
    }
}
