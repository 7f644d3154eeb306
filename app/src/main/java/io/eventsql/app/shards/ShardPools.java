package io.eventsql.app.shards;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.benchmark.settings.DatabaseAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** A pool of connections for each shard. Thread-safe. */
public final class ShardPools implements AutoCloseable {
    /** Connecting is left to EventSQL, which can begin without a shard that does not answer. */
    private static final long DO_NOT_CONNECT_YET = -1;

    /** How long is waited for a free connection, and so for a database that is started together with the app. */
    private static final Duration CONNECTION_TIMEOUT = Duration.ofSeconds(10);

    private final List<HikariDataSource> pools = new ArrayList<>();

    /**
     * Makes the pools; connections are opened as they are needed.
     *
     * @param poolSize connections to each shard
     */
    public ShardPools(List<DatabaseAddress> shards, int poolSize) {
        for (DatabaseAddress shard : shards) {
            pools.add(new HikariDataSource(config(shard, pools.size(), poolSize)));
        }
    }

    /** The data sources, in the order of the settings. */
    public List<DataSource> dataSources() {
        return List.copyOf(pools);
    }

    @Override
    public void close() {
        pools.forEach(HikariDataSource::close);
    }

    private static HikariConfig config(DatabaseAddress shard, int number, int poolSize) {
        HikariConfig config = new HikariConfig();
        config.setPoolName("DB" + number);
        config.setJdbcUrl(shard.jdbcUrl());
        config.setUsername(shard.user());
        config.setPassword(shard.password());
        config.setMaximumPoolSize(poolSize);
        config.setInitializationFailTimeout(DO_NOT_CONNECT_YET);
        config.setConnectionTimeout(CONNECTION_TIMEOUT.toMillis());
        config.addDataSourceProperty("ApplicationName", "eventsql-app");
        return config;
    }
}
