package io.eventsql.runner.drivers.pgmq;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DriverSettings;

/**
 * The settings of the driver.
 *
 * @param sqlFile the file that creates pgmq's schema
 * @param version the version of pgmq
 * @param lanes the connections of asynchronous calls and, if calls are grouped, of all
 * @param groupEvents the events from which a group of calls, one statement, takes no further one; 1: no groups
 * @param pageEvents the maximum number of events per read
 * @param pollMs how often the server looks for new events during a read
 */
record PgmqSettings(
        DatabaseAddress address,
        String sqlFile,
        String version,
        int lanes,
        int groupEvents,
        int pageEvents,
        int pollMs) {
    private static final int CONNECTIONS_MAX = 20;
    private static final int DEFAULT_LANES = 8;
    private static final int EVENTS_MAX = 100_000;
    private static final int DEFAULT_PAGE_EVENTS = 100;
    private static final int POLL_MAX_MS = 10_000;
    /** That of {@code read_with_poll}. */
    private static final int DEFAULT_POLL_MS = 100;

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    static PgmqSettings of(DriverSettings settings) {
        Variables options = new Variables(settings.options()::get);
        return new PgmqSettings(
                DatabaseVariables.readOne(new Variables(settings.environment()::get)),
                settings.requiredVariable("PGMQ_SQL"),
                settings.requiredVariable("PGMQ_VERSION"),
                options.number("lanes", DEFAULT_LANES, 1, CONNECTIONS_MAX / 2),
                options.number("group_events", 1, 1, EVENTS_MAX),
                options.number("page_events", DEFAULT_PAGE_EVENTS, 1, EVENTS_MAX),
                options.number("poll_ms", DEFAULT_POLL_MS, 1, POLL_MAX_MS));
    }

    HikariDataSource pool(int connections) {
        HikariConfig config = new HikariConfig();
        config.setPoolName("pgmq");
        config.setJdbcUrl(address.jdbcUrl());
        config.setUsername(address.user());
        config.setPassword(address.password());
        config.setMaximumPoolSize(Math.max(CONNECTIONS_MAX, connections));
        config.setMinimumIdle(0);
        return new HikariDataSource(config);
    }
}
