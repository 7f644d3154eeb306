package io.eventsql.runner.drivers;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class EventSqlOutboxIT extends DriverContract {
    private static EventsDb server;

    @BeforeAll
    static void startServer() {
        server = EventsDb.start();
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

    @Override
    protected DriverProvider provider() {
        return new EventSqlOutboxDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(
                Map.of(),
                Map.of("DB_URLS", server.jdbcUrl(), "DB_USER", server.username(), "DB_PASSWORD", server.password()));
    }
}
