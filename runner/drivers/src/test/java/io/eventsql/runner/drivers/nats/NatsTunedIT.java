package io.eventsql.runner.drivers.nats;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With connections that share the load, and one acknowledgement for a page. */
class NatsTunedIT extends NatsIT {

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(
                Map.of("connections", "2", "page_events", "1000", "ack_pages", "1", "unacked_events", "20000"),
                System.getenv());
    }
}
