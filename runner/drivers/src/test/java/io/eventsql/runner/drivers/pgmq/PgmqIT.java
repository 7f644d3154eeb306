package io.eventsql.runner.drivers.pgmq;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;

/** Runs against the server configured in the environment. {@code scripts/run_driver_tests.bash} starts one. */
class PgmqIT extends DriverContract {

    @BeforeAll
    static void requireServer() {
        requireVariable("PGMQ_SQL", "bash scripts/run_driver_tests.bash pgmq");
    }

    @Override
    protected DriverProvider provider() {
        return new PgmqDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), System.getenv());
    }

    @Override
    protected boolean hasSeveralConsumers() {
        return false;
    }
}
