package io.eventsql.runner.drivers.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class RedisTest {

    @Test
    void guarantees_durabilityIsThatOfTheServer() {
        assertThat(durability(Map.of("REDIS_APPENDFSYNC", "always"))).isEqualTo("flushed to disk (fsync)");
        assertThat(durability(Map.of("REDIS_APPENDFSYNC", "everysec")))
                .contains("in memory")
                .contains("a second");
        assertThat(durability(Map.of())).contains("unknown");
    }

    private static String durability(Map<String, String> environment) {
        return new RedisDriverProvider().guarantees(environment).durability();
    }
}
