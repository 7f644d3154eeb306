package io.eventsql.kafka.connect;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.reader.LogEvent;
import io.eventsql.reader.StreamPartition;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class RecordConverterTest {
    private static final Instant TIME = Instant.parse("2026-11-24T09:30:00.123456Z");
    private static final StreamPartition PARTITION = new StreamPartition("orders", 1, 3);

    private static @Nullable SourceRecord convert(LogEvent event, String... options) {
        Map<String, String> properties = new HashMap<>(Map.of(
                "connection.url", "jdbc:postgresql://db0/app", "connection.user", "connector", "streams", "orders"));
        for (int i = 0; i < options.length; i += 2) {
            properties.put(options[i], options[i + 1]);
        }
        return new RecordConverter(ConnectorConfig.ofConnector(properties)).convert(event, "a/7");
    }

    private static LogEvent event(@Nullable String key, byte @Nullable [] value, @Nullable String headers) {
        return new LogEvent(PARTITION, 41, key, value, headers, TIME, false);
    }

    private static LogEvent erased() {
        return new LogEvent(PARTITION, 41, "k1", null, null, TIME, true);
    }

    @Test
    void event_becomesRecord() {
        SourceRecord converted = convert(event("k1", "v1".getBytes(UTF_8), "{\"trace\": \"t1\", \"b\": \"ü\"}"));

        assertThat(converted.topic()).isEqualTo("orders");
        assertThat(converted.kafkaPartition()).isNull();
        assertThat(converted.keySchema()).isEqualTo(Schema.STRING_SCHEMA);
        assertThat(converted.key()).isEqualTo("k1");
        assertThat(converted.valueSchema()).isEqualTo(Schema.BYTES_SCHEMA);
        assertThat(converted.value()).isEqualTo("v1".getBytes(UTF_8));
        assertThat(converted.timestamp()).isEqualTo(TIME.toEpochMilli());
        assertThat(converted.sourcePartition()).isEqualTo(Map.of("partition", "orders/1/3"));
        assertThat(converted.sourceOffset())
                .isEqualTo(Map.of("offset", 41L, "incarnation", "a/7", "published_at", TIME.toString()));
        assertThat(converted.headers()).hasSize(2);
        assertThat(converted.headers().lastWithName("trace").value()).isEqualTo("t1");
        assertThat(converted.headers().lastWithName("b").value()).isEqualTo("ü");
    }

    @Test
    void withoutKey_hasNoKeySchema() {
        SourceRecord converted = convert(event(null, new byte[0], null));

        assertThat(converted.keySchema()).isNull();
        assertThat(converted.key()).isNull();
        assertThat(converted.value()).isEqualTo(new byte[0]);
        assertThat(converted.headers()).isEmpty();
    }

    /** A value schema would make some converters write a value. */
    @Test
    void tombstone_hasNoValueAndNoSchema() {
        SourceRecord converted = convert(event("k1", null, null), "value.type", "string");

        assertThat(converted.value()).isNull();
        assertThat(converted.valueSchema()).isNull();
    }

    @Test
    void erased_followsThePolicy() {
        assertThat(convert(erased())).isNull();
        assertThat(convert(erased(), "erased.events.policy", "tombstone"))
                .satisfies(converted -> assertThat(converted.key()).isEqualTo("k1"))
                .satisfies(converted -> assertThat(converted.value()).isNull());
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> convert(erased(), "erased.events.policy", "fail"))
                .withMessageContaining("offset 41")
                .withMessageContaining("erased.events.policy");
    }

    @Test
    void text_isDecoded_orRefused() {
        assertThat(convert(event("k1", "ü".getBytes(UTF_8), null), "value.type", "string"))
                .satisfies(converted -> assertThat(converted.value()).isEqualTo("ü"))
                .satisfies(converted -> assertThat(converted.valueSchema()).isEqualTo(Schema.STRING_SCHEMA));
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> convert(event("k1", new byte[] {(byte) 0xFF}, null), "value.type", "string"))
                .withMessageContaining("offset 41")
                .withMessageContaining("set value.type to bytes");
    }

    @Test
    void partitionAndPositionHeaders_areThoseOfTheStream() {
        SourceRecord converted =
                convert(event("k1", new byte[1], null), "topic.partition", "same", "position.headers", "true");

        assertThat(converted.kafkaPartition()).isEqualTo(3);
        assertThat(converted.headers().lastWithName("eventsql.stream").value()).isEqualTo("orders");
        assertThat(converted.headers().lastWithName("eventsql.shard").value()).isEqualTo(1);
        assertThat(converted.headers().lastWithName("eventsql.partition").value())
                .isEqualTo(3);
        assertThat(converted.headers().lastWithName("eventsql.offset").value()).isEqualTo(41L);
    }
}
