package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.testing.TestDatabase;
import java.sql.SQLException;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class EventSqlOutboxIT extends DriverContract {
    private static TestDatabase database;

    @BeforeAll
    static void createDatabase() {
        database = TestDatabase.create();
    }

    @AfterAll
    static void dropDatabase() throws SQLException {
        database.close();
    }

    @Override
    protected DriverProvider provider() {
        return new EventSqlOutboxDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), database.environment());
    }
}
