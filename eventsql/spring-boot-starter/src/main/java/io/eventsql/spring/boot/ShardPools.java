package io.eventsql.spring.boot;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.DriverDataSource;
import io.eventsql.ReconnectingDataSource;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/**
 * A connection pool for each shard of {@code eventsql.shards}. The pools are no beans, so that they do not affect the
 * configuration of the application's own data source. Thread-safe.
 */
final class ShardPools implements AutoCloseable {
    /** EventSQL connects itself, and can start while a shard is unavailable. */
    private static final long DO_NOT_CONNECT_YET = -1;
    /**
     * The library's level. A HikariCP pool without a level takes that of its first connection; if this connection breaks
     * while the level is read, a pool that is created without connecting opens no connection ever after (HikariCP issue
     * 1944).
     */
    private static final String ISOLATION = "TRANSACTION_READ_COMMITTED";

    private static final long RECONNECT_WAIT_MS = 5_000;

    private final Map<String, HikariDataSource> pools = new LinkedHashMap<>();
    /** By the name of their shard. */
    private final Map<String, HikariDataSource> replicas = new LinkedHashMap<>();

    /**
     * Creates the pools; connections are opened when they are needed.
     *
     * @throws InvalidConfigurationPropertyValueException if one has no URL, or names a DataSource of JNDI
     */
    ShardPools(Map<String, EventSqlProperties.Shard> shards) {
        shards.forEach((name, shard) -> {
            pools.put(name, new HikariDataSource(config(name, shard)));
            String replicaUrl = shard.replica().url();
            if (replicaUrl != null && !replicaUrl.isBlank()) {
                replicas.put(name, new HikariDataSource(replicaConfig(name, shard, replicaUrl)));
            }
        });
    }

    /** Returns the data sources, in the order of the properties. */
    List<DataSource> dataSources() {
        return List.copyOf(pools.values());
    }

    /** Returns the names of the shards, in the order of the properties. */
    List<String> names() {
        return List.copyOf(pools.keySet());
    }

    /** Returns the data source of the shard with that name, or {@code null}. */
    @Nullable
    DataSource dataSource(String name) {
        return pools.get(name);
    }

    /** Returns the replicas' data sources by those of their shards. */
    Map<DataSource, DataSource> replicas() {
        Map<DataSource, DataSource> ofShards = new LinkedHashMap<>();
        pools.forEach((name, pool) -> {
            DataSource replica = replicas.get(name);
            if (replica != null) {
                ofShards.put(pool, replica);
            }
        });
        return ofShards;
    }

    @Override
    public void close() {
        replicas.values().forEach(HikariDataSource::close);
        pools.values().forEach(HikariDataSource::close);
    }

    private static HikariConfig config(String name, EventSqlProperties.Shard shard) {
        String property = "eventsql.shards." + name;
        if (shard.url() == null || shard.url().isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".url", shard.url(), "A shard needs the JDBC URL of its database.");
        }
        HikariConfig config =
                config("eventsql-" + name, shard, shard.url(), shard.poolSize(), shard.connectionTimeout());
        if (config.getDataSourceJNDI() != null) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".hikari.data-source-jndi",
                    config.getDataSourceJNDI(),
                    "The pool of a shard connects to its URL. Remove the setting, or use DataSource beans with"
                            + " @EventSqlDataSource instead of eventsql.shards.");
        }
        return config;
    }

    private static HikariConfig replicaConfig(String name, EventSqlProperties.Shard shard, String url) {
        EventSqlProperties.Replica replica = shard.replica();
        return config("eventsql-" + name + "-replica", shard, url, replica.poolSize(), replica.connectionTimeout());
    }

    private static HikariConfig config(
            String poolName, EventSqlProperties.Shard shard, String url, int size, Duration connectionTimeout) {
        HikariConfig config = new HikariConfig();
        config.setPoolName(poolName);
        config.setInitializationFailTimeout(DO_NOT_CONNECT_YET);
        config.setTransactionIsolation(ISOLATION);
        config.setJdbcUrl(url);
        config.setUsername(shard.username());
        config.setPassword(shard.password());
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(connectionTimeout.toMillis());
        if (!shard.hikari().isEmpty()) {
            new Binder(new MapConfigurationPropertySource(prefixed("hikari.", shard.hikari())))
                    .bind("hikari", Bindable.ofInstance(config));
        }
        reconnectAtOnce(config);
        return config;
    }

    /** After an outage, HikariCP itself would wait for as long as that lasted, up to 5 s. */
    private static void reconnectAtOnce(HikariConfig config) {
        if (config.getDataSourceClassName() != null) {
            return; // which the properties have chosen
        }
        DataSource driver = new DriverDataSource(
                config.getJdbcUrl(),
                config.getDriverClassName(),
                config.getDataSourceProperties(),
                config.getUsername(),
                config.getPassword());
        Duration maxWait = Duration.ofMillis(Math.min(RECONNECT_WAIT_MS, config.getConnectionTimeout() / 2));
        config.setDataSource(ReconnectingDataSource.of(driver, maxWait));
    }

    private static Map<String, String> prefixed(String prefix, Map<String, String> values) {
        Map<String, String> prefixed = new LinkedHashMap<>();
        values.forEach((name, value) -> prefixed.put(prefix + name, value));
        return prefixed;
    }
}
