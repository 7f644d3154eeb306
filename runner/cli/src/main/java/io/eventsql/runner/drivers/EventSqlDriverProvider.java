package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import java.util.Map;

/** {@code eventsql}: the library as used by applications. */
public final class EventSqlDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "eventsql";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed by PostgreSQL, subject to its fsync and synchronous_commit", "per key", "at least once");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return new EventSqlDriver(settings);
    }
}
