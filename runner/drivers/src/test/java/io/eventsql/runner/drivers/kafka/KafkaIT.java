package io.eventsql.runner.drivers.kafka;

import static org.assertj.core.api.Assumptions.assumeThat;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Against the server that the environment names; {@code scripts/run_driver_tests.bash} starts one. */
class KafkaIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        assumeThat(System.getenv())
                .as("skipped: KAFKA_BOOTSTRAP_SERVERS is not set (bash scripts/run_driver_tests.bash kafka)")
                .containsKey("KAFKA_BOOTSTRAP_SERVERS");
    }

    @Override
    protected DriverProvider provider() {
        return new Kafka();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }
}
