package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.testing.TestDatabase;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;

class EventSqlOutboxIT extends DriverContract {
    @AutoClose
    private static final TestDatabase DATABASE = TestDatabase.create();

    @Override
    protected DriverProvider provider() {
        return new EventSqlOutboxDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), DATABASE.environment());
    }
}
