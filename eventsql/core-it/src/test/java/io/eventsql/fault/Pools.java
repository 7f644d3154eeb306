package io.eventsql.fault;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EventsDb;
import java.util.function.Consumer;

/** Pools as a user of the library would make them, quick to notice that a database is away. */
final class Pools {
    private Pools() {}

    /** A pool of connections to the server's database. */
    static HikariDataSource pool(EventsDb eventsDb) {
        return pool(eventsDb, eventsDb.jdbcUrl());
    }

    /** A pool of connections by another way, with the server's user. */
    static HikariDataSource pool(EventsDb eventsDb, String jdbcUrl) {
        return pool(eventsDb, jdbcUrl, config -> {});
    }

    /** The same with other settings of the pool. */
    static HikariDataSource pool(EventsDb eventsDb, String jdbcUrl, Consumer<HikariConfig> settings) {
        return pool(jdbcUrl, eventsDb.username(), eventsDb.password(), settings);
    }

    /** A pool of connections. */
    static HikariDataSource pool(String jdbcUrl, String username, String password, Consumer<HikariConfig> settings) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(jdbcUrl);
        config.setUsername(username);
        config.setPassword(password);
        config.setMaximumPoolSize(12);
        config.setMinimumIdle(0);
        config.setConnectionTimeout(1_000);
        config.setValidationTimeout(500);
        config.setInitializationFailTimeout(-1);
        config.addDataSourceProperty("connectTimeout", "2");
        config.addDataSourceProperty("loginTimeout", "2");
        settings.accept(config);
        return new HikariDataSource(config);
    }
}
