package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;

/** With several producers that wait for more, as for the highest rate. */
class KafkaTunedIT extends KafkaIT {

    @Override
    protected DriverSettings settings() {
        Map<String, String> options =
                Map.of("producer.linger.ms", "0", "async.linger.ms", "10", "async_producers", "2");
        return new DriverSettings(options, System.getenv());
    }
}
