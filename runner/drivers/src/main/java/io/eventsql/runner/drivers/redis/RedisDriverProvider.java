package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import redis.clients.jedis.RedisClient;

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

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    @Override
    public Driver open(DriverSettings settings) {
        RedisSettings read = RedisSettings.of(settings);
        RedisClient client = read.newClient();
        try {
            client.ping();
            return new RedisDriver(read, client);
        } catch (RuntimeException e) {
            client.close();
            throw e;
        }
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new RedisPlainProgram());
    }

    /** A connection to a Redis server. Stores keys and values, but not headers. Thread-safe. */
    private static final class RedisDriver implements Driver {
        private static final String VERSION_FIELD = "redis_version:";

        private final RedisSettings settings;
        private final RedisClient client;
        private final List<CallGroups> groups = new CopyOnWriteArrayList<>();

        RedisDriver(RedisSettings settings, RedisClient client) {
            this.settings = settings;
            this.client = client;
        }

        @Override
        public String version() {
            return client.info("server")
                    .lines()
                    .filter(line -> line.startsWith(VERSION_FIELD))
                    .map(line ->
                            "Redis " + line.substring(VERSION_FIELD.length()).strip())
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException("Cannot determine the version of the server"));
        }

        /** Does nothing, because the first event creates the stream. */
        @Override
        public void createStream(String name, int partitions) {}

        @Override
        public PublishTarget publisher(String stream) {
            RedisAppend append = new RedisAppend(client, stream);
            CallGroups shared = new CallGroups(settings.lanes(), settings.pipelineEvents(), append::append);
            groups.add(shared);
            return shared.target(settings.sharedConnections() > 0);
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            RedisReader reader = new RedisReader(client, stream, consumer, settings);
            return reader.start(
                    stream + "-" + consumer,
                    page -> listener.delivered(page, RedisReader::key, RedisReader::value),
                    listener::failed);
        }

        @Override
        public void clear(String stream) {
            client.xtrim(stream.getBytes(UTF_8), 0, false);
        }

        @Override
        public void close() {
            groups.forEach(CallGroups::close);
            client.close();
        }
    }
}
