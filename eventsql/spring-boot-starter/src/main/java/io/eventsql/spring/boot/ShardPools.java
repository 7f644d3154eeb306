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
 * A pool of connections for each shard of {@code eventsql.shards}. They are no beans: the application's own data source is
 * configured as if they were not there. Thread-safe.
 */
public final class ShardPools implements AutoCloseable {
    /** Connecting is left to EventSQL, which can begin without a shard that does not answer. */
    private static final long DO_NOT_CONNECT_YET = -1;

    private final Map<String, HikariDataSource> pools = new LinkedHashMap<>();

    /**
     * Makes the pools; connections are opened as they are needed.
     *
     * @throws InvalidConfigurationPropertyValueException if one has no URL
     */
    ShardPools(Map<String, EventSqlProperties.Shard> shards) {
        shards.forEach((name, shard) -> pools.put(name, new HikariDataSource(config(name, shard))));
    }

    /** The data sources, in the order of the properties. */
    public List<DataSource> dataSources() {
        return List.copyOf(pools.values());
    }

    /** The data source of the shard with that name, or {@code null}. */
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
                    property + ".url", shard.url(), "A shard needs the JDBC address of its database.");
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
