package io.eventsql.runner.drivers.pgmq;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import java.io.IOException;
import java.sql.SQLException;
import java.util.Map;
import java.util.Optional;

/**
 * pgmq: a queue per stream, in one database, with one consumer. Variables: those of the database, {@code PGMQ_SQL}, {@code
 * PGMQ_VERSION}. Options: {@code lanes} (8), {@code group_events} (1), {@code page_events} (100), {@code poll_ms} (100), see
 * {@link PgmqSettings}.
 */
public final class PgmqDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "pgmq";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed, subject to the server's synchronous_commit and fsync",
                "per key, between transactions that exclude each other",
                "at least once to one consumer, deleted after delivery");
    }

    @Override
    public Driver open(DriverSettings settings) throws SQLException, IOException {
        return PgmqDriver.open(settings);
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new PgmqPlainProgram());
    }
}
