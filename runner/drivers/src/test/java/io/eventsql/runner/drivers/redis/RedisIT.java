package io.eventsql.runner.drivers.redis;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Runs against the server configured in the environment. {@code scripts/run_driver_tests.bash} starts one. */
class RedisIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        requireVariable("REDIS_HOST", "bash scripts/run_driver_tests.bash redis");
    }

    @Override
    protected DriverProvider provider() {
        return new RedisDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }
}
