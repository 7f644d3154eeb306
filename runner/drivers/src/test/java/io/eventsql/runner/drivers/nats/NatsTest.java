package io.eventsql.runner.drivers.nats;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class NatsTest {

    @Test
    void guarantees_durabilityIsThatOfTheServer() {
        assertThat(durability(Map.of("NATS_SYNC", "always"))).isEqualTo("flushed to disk (fsync)");
        assertThat(durability(Map.of("NATS_SYNC", "interval")))
                .contains("page cache")
                .contains("2 minutes");
        assertThat(durability(Map.of())).contains("unknown");
    }

    private static String durability(Map<String, String> environment) {
        return new NatsDriverProvider().guarantees(environment).durability();
    }
}
