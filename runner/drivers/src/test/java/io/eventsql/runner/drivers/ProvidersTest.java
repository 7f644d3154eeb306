package io.eventsql.runner.drivers;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.driver.DriverProvider;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

class ProvidersTest {

    @Test
    void providers_areFoundByName() {
        assertThat(ServiceLoader.load(DriverProvider.class))
                .extracting(DriverProvider::name)
                .containsExactlyInAnyOrder("kafka", "nats", "pgmq", "pgq", "redis");
    }
}
