package io.eventsql.runner.drivers;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.runner.driver.DriverContract;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.testing.TestDatabase;
import java.sql.SQLException;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class OutboxTableIT extends DriverContract {
    private static TestDatabase database;

    @BeforeAll
    static void createDatabase() {
        database = TestDatabase.create();
    }

    @AfterAll
    static void dropDatabase() throws SQLException {
        database.close();
    }

    @Test
    void open_invalidOption_isNamed() {
        DriverSettings wrong =
                new DriverSettings(Map.of("pollers", "99"), settings().environment());

        assertThatThrownBy(() -> provider().open(wrong))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("pollers");
    }

    @Override
    protected DriverProvider provider() {
        return new OutboxTableDriverProvider();
    }

    @Override
    protected DriverSettings settings() {
        return new DriverSettings(Map.of(), database.environment());
    }

    @Override
    protected boolean keepsOrderOfKeys() {
        return false;
    }

    @Override
    protected boolean hasSeveralConsumers() {
        return false;
    }
}
