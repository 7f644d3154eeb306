package io.eventsql.runner.drivers.nats;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Runs against the server configured in the environment. {@code scripts/run_driver_tests.bash} starts one. */
class NatsIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        requireVariable("NATS_URL", "bash scripts/run_driver_tests.bash nats");
    }

    @Override
    protected DriverProvider provider() {
        return new NatsDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }
}
