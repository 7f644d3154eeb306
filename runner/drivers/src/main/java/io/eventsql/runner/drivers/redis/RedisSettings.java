package io.eventsql.runner.drivers.redis;

import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DriverSettings;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.RedisClient;

/**
 * The settings of the client.
 *
 * @param sharedConnections the connections that all calls share, pipelined; 0 if each call takes one of the pool
 * @param pipelineEvents the maximum number of events in a pipeline of several calls
 * @param pageEvents the maximum number of events per read
 * @param storesPosition whether a consumer stores the id of the last event itself, instead of being a member of a group
 */
record RedisSettings(
        String host, int port, int sharedConnections, int pipelineEvents, int pageEvents, boolean storesPosition) {
    private static final int DEFAULT_PORT = 6_379;
    private static final int PORT_MAX = 65_535;
    private static final int SHARED_MAX = 16;
    private static final int EVENTS_MAX = 100_000;
    /** The threads without shared connections, for calls that do not wait. */
    private static final int BLOCKING_THREADS = 16;

    private static final int CONNECTIONS_MAX = 64;

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    static RedisSettings of(DriverSettings settings) {
        Variables environment = new Variables(settings.environment()::get);
        Variables options = new Variables(settings.options()::get);
        return new RedisSettings(
                settings.requiredVariable("REDIS_HOST"),
                environment.number("REDIS_PORT", DEFAULT_PORT, 1, PORT_MAX),
                options.number("shared_connections", 0, 0, SHARED_MAX),
                options.number("pipeline_events", 1, 1, EVENTS_MAX),
                options.number("page_events", 1_000, 1, EVENTS_MAX),
                options.number("stored_position", 0, 0, 1) == 1);
    }

    /** Returns the threads that write asynchronous calls. */
    int lanes() {
        return sharedConnections == 0 ? BLOCKING_THREADS : sharedConnections;
    }

    RedisClient newClient() {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(CONNECTIONS_MAX);
        pool.setMaxIdle(CONNECTIONS_MAX);
        return RedisClient.builder().hostAndPort(host, port).poolConfig(pool).build();
    }
}
