package io.eventsql.runner.drivers.pgq;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import java.sql.SQLException;
import java.util.Map;

/**
 * PgQ 3: a queue per stream, in one database with the extension. The driver ticks instead of {@code pgqd}, every {@code
 * tick_ms} (100) milliseconds. Further options: {@code lanes} (8), {@code group_events} (1), {@code bulk} (0 or 1), see
 * {@link PgQDriver}.
 */
public final class PgQDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "pgq";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed, subject to the server's synchronous_commit and fsync",
                "per key, between transactions that exclude each other",
                "at least once, in batches between two ticks");
    }

    @Override
    public Driver open(DriverSettings settings) throws SQLException {
        return PgQDriver.open(settings);
    }
}
