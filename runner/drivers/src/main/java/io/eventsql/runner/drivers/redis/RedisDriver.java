package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.KeyedExecutor;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.RedisClient;

/** A connection to a Redis server. Stores keys and values, but not headers. Thread-safe. */
final class RedisDriver implements Driver {
    private static final int DEFAULT_PORT = 6_379;
    private static final int PORT_MAX = 65_535;
    private static final int CONNECTIONS_MAX = 64;
    private static final int ASYNC_CALLS = 16;
    private static final String VERSION_FIELD = "redis_version:";

    private final RedisClient client;
    private final KeyedExecutor executor = new KeyedExecutor(ASYNC_CALLS);
    private final List<RedisSubscription> subscriptions = new CopyOnWriteArrayList<>();

    private RedisDriver(RedisClient client) {
        this.client = client;
    }

    /** @throws IllegalArgumentException if a variable is missing or invalid; the message names it */
    static RedisDriver open(DriverSettings settings) {
        String host = settings.requiredVariable("REDIS_HOST");
        int port = new Variables(settings.environment()::get).number("REDIS_PORT", DEFAULT_PORT, 1, PORT_MAX);
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(CONNECTIONS_MAX);
        pool.setMaxIdle(CONNECTIONS_MAX);
        RedisClient client =
                RedisClient.builder().hostAndPort(host, port).poolConfig(pool).build();
        try {
            client.ping();
            return new RedisDriver(client);
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
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                append.append(events);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return executor.submit(events, () -> publish(events));
            }
        };
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
        RedisSubscription subscription = new RedisSubscription(client, stream, consumer, listener);
        subscriptions.add(subscription);
        return () -> {
            subscriptions.remove(subscription);
            subscription.close();
        };
    }

    @Override
    public void clear(String stream) {
        client.xtrim(stream.getBytes(UTF_8), 0, false);
    }

    @Override
    public void close() {
        subscriptions.forEach(RedisSubscription::close);
        executor.close();
        client.close();
    }
}
