package io.eventsql.runner.drivers.redis;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With pipelines on shared connections, and a consumer that stores its position. */
class RedisTunedIT extends RedisIT {

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(
                Map.of("shared_connections", "2", "pipeline_events", "1000", "stored_position", "1"), System.getenv());
    }
}
