package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import java.util.Map;
import java.util.Optional;

/**
 * Apache Kafka: a topic per stream, idempotent producer, {@code acks=all}; a consumer is a group with one member.
 * Options: see {@link KafkaSettings}. Variables: {@code KAFKA_BOOTSTRAP_SERVERS}; {@code KAFKA_FSYNC} ({@code true} or {@code false}) and
 * {@code KAFKA_VERSION} describe the broker, which does not report them.
 */
public final class KafkaDriverProvider implements DriverProvider {
    @Override
    public String name() {
        return "kafka";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                durability(environment), "per key (per partition)", "at least once to a group; published once");
    }

    private static String durability(Map<String, String> environment) {
        return switch (environment.getOrDefault("KAFKA_FSYNC", "")) {
            case "true" -> "flushed to disk (fsync) by all in-sync replicas";
            case "false" -> "in the page cache of all in-sync replicas, not flushed";
            default -> "in all in-sync replicas; flush policy unknown (set KAFKA_FSYNC)";
        };
    }

    @Override
    public Driver open(DriverSettings settings) throws Exception {
        return KafkaDriver.open(settings);
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new KafkaPlainProgram());
    }
}
