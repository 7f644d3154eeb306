package io.eventsql.runner.drivers.redis;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import java.util.Map;
import java.util.Optional;

/**
 * Redis Streams: {@code XADD}, pipelined for a call of several events; a consumer is a group with one member.
 * Variables: {@code REDIS_HOST}, {@code REDIS_PORT} (6379); {@code REDIS_APPENDFSYNC} describes the server's setting.
 * Options: {@code shared_connections} (0), {@code pipeline_events} (1), {@code page_events} (1000), {@code
 * stored_position} (0), see {@link RedisSettings}.
 */
public final class RedisDriverProvider implements DriverProvider {
    @Override
    public String name() {
        return "redis";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(durability(environment), "all events of a stream", "at least once");
    }

    private static String durability(Map<String, String> environment) {
        return switch (environment.getOrDefault("REDIS_APPENDFSYNC", "")) {
            case "always" -> "flushed to disk (fsync)";
            case "everysec" -> "in memory; flushed to disk within about a second";
            default -> "in memory; flush policy unknown (set REDIS_APPENDFSYNC)";
        };
    }

    @Override
    public Driver open(DriverSettings settings) {
        return RedisDriver.open(settings);
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new RedisPlainProgram());
    }
}
