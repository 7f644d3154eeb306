package io.eventsql.runner.drivers.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class KafkaTest {

    @Test
    void guarantees_durabilityIsThatOfTheBroker() {
        assertThat(durability(Map.of("KAFKA_FSYNC", "true")))
                .isEqualTo("flushed to disk (fsync) by all in-sync replicas");
        assertThat(durability(Map.of("KAFKA_FSYNC", "false")))
                .contains("page cache")
                .contains("not flushed");
        assertThat(durability(Map.of())).contains("unknown");
    }

    private static String durability(Map<String, String> environment) {
        return new KafkaDriverProvider().guarantees(environment).durability();
    }
}
