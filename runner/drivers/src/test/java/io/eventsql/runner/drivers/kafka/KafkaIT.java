package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Against the server that the environment names; {@code scripts/run_driver_tests.bash} starts one. */
class KafkaIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        requireVariable("KAFKA_BOOTSTRAP_SERVERS", "bash scripts/run_driver_tests.bash kafka");
    }

    @Override
    protected DriverProvider provider() {
        return new KafkaDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }
}
