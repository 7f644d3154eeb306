package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With groups of calls in one commit. */
class OutboxTableTunedIT extends OutboxTableIT {

    @Override
    protected DriverSettings settings() {
        Map<String, String> options = Map.of("lanes", "2", "group_events", "2000", "pollers", "1");
        return new DriverSettings(options, super.settings().environment());
    }
}
