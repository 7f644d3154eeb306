package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import java.util.Map;

/**
 * {@code outbox-table}: a hand-written outbox in one database. Callers insert into a plain table and a consumer deletes
 * from it. Options: {@code pollers} (4), the connections that poll; {@code page_events} (100), the maximum events per
 * poll; {@code poll_ms} (10), the pause after a poll without events.
 */
public final class OutboxTableDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "outbox-table";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed, subject to the server's synchronous_commit and fsync",
                "none",
                "at least once, to one consumer; handled events are deleted");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return OutboxTableDriver.open(settings);
    }
}
