package io.eventsql.kafka.connect;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.reader.LogEvent;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.time.Instant;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SourcePartitionsTest {
    private static final Instant TIME = Instant.parse("2026-11-24T09:30:00.123456Z");
    private static final StreamPartition PARTITION = new StreamPartition("orders.eu", 1, 12);

    @Test
    void sourcePartition_hasOneEntry_whichNamesThePartition() {
        assertThat(SourcePartitions.toMap(PARTITION)).isEqualTo(Map.of("partition", "orders.eu/1/12"));
        assertThat(SourcePartitions.partition("orders.eu/1/12")).isEqualTo(PARTITION);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "orders", "orders/0", "orders/0/0/0", "orders/a/0", "orders/0/-1", "/0/0"})
    void partition_invalidName_isRefused(String name) {
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> SourcePartitions.partition(name))
                .withMessageContaining("stream/shard/partition");
    }

    @Test
    void position_afterAnEvent_isTheNextOffset_withItsHistory() {
        LogEvent event = new LogEvent(PARTITION, 41, null, new byte[0], null, TIME, false);

        assertThat(SourcePartitions.position(SourcePartitions.offsetAfter(event, "a/7")))
                .isEqualTo(new ReadPosition(42, "a/7", 41, TIME));
    }

    @Test
    void position_offsetAlone_isNotCheckedYet() {
        assertThat(SourcePartitions.position(Map.of("offset", 41))).isEqualTo(ReadPosition.at(42));
        assertThat(SourcePartitions.position(Map.of("offset", -1L))).isEqualTo(ReadPosition.at(0));
    }

    @Test
    void alterOffsets_valid_areAccepted() {
        assertThat(new EventSqlSourceConnector()
                        .alterOffsets(Map.of(), Map.of(Map.of("partition", "orders/0/3"), Map.of("offset", 41))))
                .isTrue();
    }

    @Test
    void alterOffsets_invalid_areRefused() {
        Map<String, Object> noNumber = Map.of("offset", "x");
        assertRefused(Map.of("partition", "orders/0/3"), noNumber, "offset must be the number");
        assertRefused(Map.of("partition", "orders/0/3"), Map.of("offset", -2), "offset must be the number");
        assertRefused(Map.of("partition", "orders"), Map.of("offset", 1), "stream/shard/partition");
        assertRefused(Map.of("stream", "orders"), Map.of("offset", 1), "has the entry partition alone");
        assertRefused(
                Map.of("partition", "orders/0/3"),
                Map.of("offset", 1, "incarnation", "a", "published_at", "yesterday"),
                "published_at must be a time");
    }

    private static void assertRefused(Map<String, ?> partition, Map<String, ?> offset, String message) {
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> new EventSqlSourceConnector().alterOffsets(Map.of(), Map.of(partition, offset)))
                .withMessageContaining(message);
    }
}
