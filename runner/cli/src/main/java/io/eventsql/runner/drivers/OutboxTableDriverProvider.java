package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;

/**
 * What is built by hand where there is only a database: a plain table that callers insert into and a consumer deletes
 * from. One database. Options: {@code pollers} (4), the connections that look for events; {@code page_events} (100), the
 * most events of one look; {@code poll_ms} (10), the pause after a look that found none.
 */
public final class OutboxTableDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "outbox-table";
    }

    @Override
    public Guarantees guarantees() {
        return new Guarantees(
                "committed, as the server's synchronous_commit and fsync say",
                "none",
                "at least once, to one consumer; handled events are gone");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return OutboxTableDriver.open(settings);
    }
}
