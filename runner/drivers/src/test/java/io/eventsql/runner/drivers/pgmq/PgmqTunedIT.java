package io.eventsql.runner.drivers.pgmq;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With groups of calls, and large pages. */
class PgmqTunedIT extends PgmqIT {

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(
                Map.of("lanes", "2", "group_events", "2000", "page_events", "5000", "poll_ms", "5"), System.getenv());
    }
}
