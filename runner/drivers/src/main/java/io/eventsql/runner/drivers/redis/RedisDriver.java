package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import redis.clients.jedis.RedisClient;

/** A connection to a Redis server. Stores keys and values, but not headers. Thread-safe. */
final class RedisDriver implements Driver {
    private static final String VERSION_FIELD = "redis_version:";

    private final RedisSettings settings;
    private final RedisClient client;
    private final List<CallGroups> groups = new CopyOnWriteArrayList<>();

    private RedisDriver(RedisSettings settings, RedisClient client) {
        this.settings = settings;
        this.client = client;
    }

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    static RedisDriver open(DriverSettings settings) {
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
    public String version() {
        return client.info("server")
                .lines()
                .filter(line -> line.startsWith(VERSION_FIELD))
                .map(line -> "Redis " + line.substring(VERSION_FIELD.length()).strip())
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
