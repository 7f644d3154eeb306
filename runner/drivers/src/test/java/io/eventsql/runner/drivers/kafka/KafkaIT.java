package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Runs against the server configured in the environment. {@code scripts/run_driver_tests.bash} starts one. */
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
