package io.eventsql.runner.database;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.benchmark.settings.DatabaseAddress;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** Connection pools, one per database. {@link #close()} closes all of them. */
public final class Databases implements AutoCloseable {
    /** Covers the library's connections and those of callers with transactions. Opened on demand. */
    private static final int CONNECTIONS_MAX = 20;

    private static final long CONNECTION_TIMEOUT_MS = 10_000;

    private final List<HikariDataSource> pools;

    private Databases(List<HikariDataSource> pools) {
        this.pools = List.copyOf(pools);
    }

    /** Opens a pool for each address. If a database is unreachable for 10 seconds, closes all pools and throws. */
    public static Databases open(List<DatabaseAddress> addresses) {
        List<HikariDataSource> pools = new ArrayList<>();
        try {
            for (DatabaseAddress address : addresses) {
                pools.add(open(address, pools.size()));
            }
            return new Databases(pools);
        } catch (RuntimeException e) {
            pools.forEach(HikariDataSource::close);
            throw e;
        }
    }

    private static HikariDataSource open(DatabaseAddress address, int number) {
        HikariConfig config = new HikariConfig();
        config.setPoolName("database-" + number);
        config.setJdbcUrl(address.jdbcUrl());
        config.setUsername(address.user());
        config.setPassword(address.password());
        config.setMaximumPoolSize(CONNECTIONS_MAX);
        config.setMinimumIdle(0);
        config.setConnectionTimeout(CONNECTION_TIMEOUT_MS);
        config.setInitializationFailTimeout(CONNECTION_TIMEOUT_MS);
        return new HikariDataSource(config);
    }

    /** Returns the pools in the order of the addresses. */
    public List<DataSource> dataSources() {
        return List.copyOf(pools);
    }

    @Override
    public void close() {
        pools.forEach(HikariDataSource::close);
    }
}
