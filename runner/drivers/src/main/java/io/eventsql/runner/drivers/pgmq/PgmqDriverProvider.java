package io.eventsql.runner.drivers.pgmq;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PollingConsumer;
import io.eventsql.runner.driver.PublishTarget;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

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

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    @Override
    public Driver open(DriverSettings settings) throws SQLException, IOException {
        PgmqDriver driver = new PgmqDriver(PgmqSettings.of(settings));
        try {
            driver.statements.install(Path.of(driver.settings.sqlFile()));
            return driver;
        } catch (SQLException | IOException e) {
            driver.close();
            throw e;
        }
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new PgmqPlainProgram());
    }

    /** Queues of pgmq in one database, with one consumer each. Thread-safe. */
    private static final class PgmqDriver implements Driver {
        private final PgmqSettings settings;
        private final HikariDataSource database;
        private final PgmqStatements statements;
        private final List<CallGroups> groups = new CopyOnWriteArrayList<>();
        private final Set<String> consumed = ConcurrentHashMap.newKeySet();

        PgmqDriver(PgmqSettings settings) {
            this.settings = settings;
            this.database = settings.pool(1);
            this.statements = new PgmqStatements(database);
        }

        @Override
        public String version() throws SQLException {
            return "PGMQ " + settings.version() + " on PostgreSQL " + statements.serverVersion();
        }

        @Override
        public void createStream(String name, int partitions) throws SQLException {
            statements.create(name);
        }

        @Override
        public PublishTarget publisher(String stream) {
            CallGroups grouped =
                    new CallGroups(settings.lanes(), settings.groupEvents(), events -> statements.send(stream, events));
            groups.add(grouped);
            return grouped.target(settings.groupEvents() > 1);
        }

        /** @throws UnsupportedOperationException if the queue has a consumer, because two would share its events */
        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            if (!consumed.add(stream)) {
                throw new UnsupportedOperationException("Consumers of a queue of pgmq share its events");
            }
            PollingConsumer subscription = statements.consume(stream, settings, listener::delivered, listener::failed);
            return () -> {
                subscription.close();
                consumed.remove(stream);
            };
        }

        @Override
        public void clear(String stream) throws SQLException {
            statements.purge(stream);
        }

        @Override
        public void close() {
            groups.forEach(CallGroups::close);
            database.close();
        }
    }
}
