package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** CloudEvents in binary mode, both ways. */
class CloudEventSerializerTest {
    private static final Instant NOW = Instant.parse("2026-11-21T12:00:00Z");

    private final CloudEventSerializer serializer = new CloudEventSerializer(new PlainEventSerializer());
    private final CloudEventHeaders headers = new CloudEventHeaders(
            "/orders", EventTypes.ofCloudEvents("com.example.", Map.of()), InstantSource.fixed(NOW));

    record OrderPlaced(String id) {}

    private static CloudEventBuilder placed() {
        return CloudEventBuilder.v1()
                .withId("id-1")
                .withSource(URI.create("https://example.com/orders"))
                .withType("com.example.placed");
    }

    private static CloudEvent complete() {
        return placed().withSubject("4711")
                .withTime(OffsetDateTime.parse("2026-11-21T12:00:00.123+01:00"))
                .withDataSchema(URI.create("https://example.com/schema"))
                .withData("application/json", "{\"id\":1}".getBytes(StandardCharsets.UTF_8))
                .withExtension("traceparent", "00-1-2-01")
                .build();
    }

    @Test
    void serialize_cloudEvent_hasTheHeadersOfKafkasBinding() {
        Event event = serializer.serialize("orders", OutgoingEvent.of("4711", complete()));

        assertThat(event.key()).isEqualTo("4711");
        assertThat(event.text()).isEqualTo("{\"id\":1}");
        assertThat(event.headers())
                .isEqualTo(Map.of(
                        "ce_specversion", "1.0",
                        "ce_id", "id-1",
                        "ce_source", "https://example.com/orders",
                        "ce_type", "com.example.placed",
                        "ce_subject", "4711",
                        "ce_time", "2026-11-21T12:00:00.123+01:00",
                        "ce_dataschema", "https://example.com/schema",
                        "ce_traceparent", "00-1-2-01",
                        "content-type", "application/json"));
    }

    @Test
    void deserialize_serializedEvent_isEqual() {
        CloudEvent written = complete();

        Object read = serializer.deserialize(
                stored(serializer.serialize("orders", OutgoingEvent.of(written))), CloudEvent.class);

        assertThat(read).isEqualTo(written);
    }

    @Test
    void deserialize_withoutData_hasNone() {
        CloudEvent written = placed().build();

        CloudEvent read = CloudEventSerializer.read(stored(serializer.serialize("orders", OutgoingEvent.of(written))));

        assertThat(read).isEqualTo(written);
        assertThat(read.getData()).isNull();
    }

    @Test
    void serialize_partitionKey_isTheKeyOfAnEventWithoutOne() {
        CloudEvent keyed = placed().withExtension("partitionkey", "k1").build();

        assertThat(serializer.serialize("orders", OutgoingEvent.of(keyed)).key())
                .isEqualTo("k1");
        assertThat(serializer
                        .serialize("orders", OutgoingEvent.of("own", keyed))
                        .key())
                .isEqualTo("own");
    }

    @Test
    void deserialize_noCloudEvent_namesTheMissingHeader() {
        assertThatThrownBy(() -> CloudEventSerializer.read(stored(Event.ofText("x"))))
                .isInstanceOf(EventSerializationException.class)
                .hasMessageContaining("ce_specversion");
    }

    @Test
    void deserialize_invalidAttributes_areRejected() {
        Map<String, String> valid =
                serializer.serialize("orders", OutgoingEvent.of(complete())).headers();
        Map<String, String> broken = Map.of(
                "ce_specversion", "9.9",
                "ce_time", "yesterday",
                "ce_source", "not a uri",
                "ce_with-hyphen", "names of extensions are letters and digits");

        broken.forEach((name, value) -> {
            Map<String, String> changed = new HashMap<>(valid);
            changed.put(name, value);
            assertThatThrownBy(() -> CloudEventSerializer.read(stored(new Event(null, new byte[0], changed))))
                    .as(name)
                    .isInstanceOf(EventSerializationException.class);
        });
    }

    @Test
    void serialize_otherPayload_isDelegated() {
        Event event = serializer.serialize("orders", OutgoingEvent.of("text"));

        assertThat(event).isEqualTo(Event.ofText("text"));
        assertThat(serializer.deserialize(stored(event), String.class)).isEqualTo("text");
    }

    @Test
    void headers_ofAnObject_makeACloudEvent() {
        Event event = headers.customize("orders", new OrderPlaced("1"), Event.ofText("k", "{}"));

        CloudEvent read = CloudEventSerializer.read(stored(event));
        assertThat(read.getSource()).isEqualTo(URI.create("/orders"));
        assertThat(read.getType()).isEqualTo("com.example.OrderPlaced");
        assertThat(read.getTime()).isEqualTo(OffsetDateTime.parse("2026-11-21T12:00:00Z"));
        assertThat(UUID.fromString(read.getId())).isNotNull();
        assertThat(event.key()).isEqualTo("k");
    }

    @Test
    void headers_configuredType_isUsed() {
        CloudEventHeaders named = new CloudEventHeaders(
                "/orders",
                EventTypes.ofCloudEvents("", Map.of(OrderPlaced.class.getName(), "order.placed")),
                InstantSource.system());

        assertThat(named.customize("orders", new OrderPlaced("1"), Event.ofText("{}"))
                        .headers())
                .containsEntry("ce_type", "order.placed");
    }

    @Test
    void headers_thatAreSet_stay() {
        Event own = Event.ofText("{}").withHeader("ce_type", "mine").withHeader("ce_id", "42");

        assertThat(headers.customize("orders", "text", own).headers())
                .containsEntry("ce_type", "mine")
                .containsEntry("ce_id", "42")
                .containsEntry("ce_source", "/orders");

        Event cloudEvent = serializer.serialize("orders", OutgoingEvent.of(placed().build()));
        assertThat(headers.customize("orders", placed().build(), cloudEvent)).isSameAs(cloudEvent);
    }

    private static StoredEvent stored(Event event) {
        return new StoredEvent(new EventPosition("orders", 0, 0, 0), event.key(), event.value(), event.headers(), NOW);
    }
}
