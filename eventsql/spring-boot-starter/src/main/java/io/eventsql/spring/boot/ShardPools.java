package io.eventsql.spring.boot;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
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

    private final Map<String, HikariDataSource> pools = new LinkedHashMap<>();

    /**
     * Creates the pools; connections are opened when they are needed.
     *
     * @throws InvalidConfigurationPropertyValueException if one has no URL
     */
    ShardPools(Map<String, EventSqlProperties.Shard> shards) {
        shards.forEach((name, shard) -> pools.put(name, new HikariDataSource(config(name, shard))));
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

    @Override
    public void close() {
        pools.values().forEach(HikariDataSource::close);
    }

    private static HikariConfig config(String name, EventSqlProperties.Shard shard) {
        String property = "eventsql.shards." + name;
        if (shard.url() == null || shard.url().isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".url", shard.url(), "A shard needs the JDBC URL of its database.");
        }
        HikariConfig config = new HikariConfig();
        config.setPoolName("eventsql-" + name);
        config.setInitializationFailTimeout(DO_NOT_CONNECT_YET);
        config.setJdbcUrl(shard.url());
        config.setUsername(shard.username());
        config.setPassword(shard.password());
        config.setMaximumPoolSize(shard.poolSize());
        config.setConnectionTimeout(shard.connectionTimeout().toMillis());
        if (!shard.hikari().isEmpty()) {
            new Binder(new MapConfigurationPropertySource(prefixed("hikari.", shard.hikari())))
                    .bind("hikari", Bindable.ofInstance(config));
        }
        return config;
    }

    private static Map<String, String> prefixed(String prefix, Map<String, String> values) {
        Map<String, String> prefixed = new LinkedHashMap<>();
        values.forEach((name, value) -> prefixed.put(prefix + name, value));
        return prefixed;
    }
}
