package io.eventsql.runner.drivers.nats;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;

/**
 * NATS JetStream: asynchronous publishing, which a call waits for; a consumer is a durable pull consumer. Variables:
 * {@code NATS_URL}; {@code NATS_SYNC} describes the server's setting. Options: {@code connections} (1), {@code
 * pending_events} (4000), {@code page_events} (500), {@code ack_pages} (0 or 1), {@code unacked_events} (1000), see {@link
 * NatsSettings}.
 */
public final class NatsDriverProvider implements DriverProvider {
    @Override
    public String name() {
        return "nats";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                durability(environment), "all events of a connection", "at least once to a durable consumer");
    }

    private static String durability(Map<String, String> environment) {
        return switch (environment.getOrDefault("NATS_SYNC", "")) {
            case "always" -> "flushed to disk (fsync)";
            case "interval" -> "in the page cache; flushed to disk every 2 minutes";
            default -> "in the page cache; flush policy unknown (set NATS_SYNC)";
        };
    }

    @Override
    public Driver open(DriverSettings settings) throws IOException, InterruptedException {
        return NatsDriver.open(settings);
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new NatsPlainProgram());
    }
}
