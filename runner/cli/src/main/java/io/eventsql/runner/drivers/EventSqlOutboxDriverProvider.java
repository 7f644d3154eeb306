package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import java.util.Map;

/**
 * {@code eventsql-outbox}: EventSQL with publishing inside transactions, so that events and application rows are
 * committed together.
 */
public final class EventSqlOutboxDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "eventsql-outbox";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed with the application's rows, subject to the server's synchronous_commit and fsync",
                "per key, between transactions that exclude each other",
                "exactly once into the stream; at least once to a handler, exactly once to a transactional one");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return new EventSqlOutboxDriver(new EventSqlStreams(settings));
    }
}
