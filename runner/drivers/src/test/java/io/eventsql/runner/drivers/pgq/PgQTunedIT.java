package io.eventsql.runner.drivers.pgq;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With groups of calls, inserted into the queue's table. */
class PgQTunedIT extends PgQIT {

    @Override
    protected DriverSettings settings() {
        Map<String, String> options = Map.of("tick_ms", "20", "lanes", "2", "group_events", "2000", "bulk", "1");
        return new DriverSettings(options, System.getenv());
    }
}
