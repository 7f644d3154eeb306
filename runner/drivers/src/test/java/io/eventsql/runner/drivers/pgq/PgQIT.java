package io.eventsql.runner.drivers.pgq;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Runs against the server configured in the environment. {@code scripts/run_driver_tests.bash} starts one. */
class PgQIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        requireVariable("DB0_HOST", "bash scripts/run_driver_tests.bash pgq");
    }

    @Override
    protected DriverProvider provider() {
        return new PgQDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }

    @Override
    protected boolean clears() {
        return false;
    }
}
