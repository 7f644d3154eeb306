package io.eventsql.runner.drivers.pgq;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PollingConsumer;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * PgQ 3: a queue per stream, in one database with the extension. The driver ticks instead of {@code pgqd}, every {@code
 * tick_ms} (100) milliseconds. Further options: {@code lanes} (8), {@code group_events} (1), {@code bulk} (0 or 1), see
 * {@code Options}.
 */
public final class PgQDriverProvider implements DriverProvider {
    private static final int CONNECTIONS_MAX = 20;
    private static final int DEFAULT_LANES = 8;
    private static final int GROUP_EVENTS_MAX = 100_000;
    private static final int DEFAULT_TICK_MS = 100;
    private static final int TICK_MAX_MS = 60_000;

    /**
     * The options of the driver.
     *
     * @param tickMs the interval between two ticks
     * @param lanes the connections of asynchronous calls and, if calls are grouped, of all
     * @param groupEvents the events from which a group of calls, one transaction, takes no further one; 1: no groups
     * @param bulk whether several events are inserted into the queue's table directly instead of by a function each
     */
    private record Options(int tickMs, int lanes, int groupEvents, boolean bulk) {}

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

    /**
     * @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it
     * @throws SQLException if the extension is not installed in the database
     */
    @Override
    public Driver open(DriverSettings settings) throws SQLException {
        DatabaseAddress address = DatabaseVariables.readOne(new Variables(settings.environment()::get));
        Variables given = new Variables(settings.options()::get);
        Options options = new Options(
                given.number("tick_ms", DEFAULT_TICK_MS, 1, TICK_MAX_MS),
                given.number("lanes", DEFAULT_LANES, 1, CONNECTIONS_MAX / 2),
                given.number("group_events", 1, 1, GROUP_EVENTS_MAX),
                given.number("bulk", 0, 0, 1) == 1);
        PgQDriver driver = new PgQDriver(pool(address), options);
        try {
            driver.statements.version();
            return driver;
        } catch (SQLException e) {
            driver.close();
            throw e;
        }
    }

    private static HikariDataSource pool(DatabaseAddress address) {
        HikariConfig config = new HikariConfig();
        config.setPoolName("pgq");
        config.setJdbcUrl(address.jdbcUrl());
        config.setUsername(address.user());
        config.setPassword(address.password());
        config.setMaximumPoolSize(CONNECTIONS_MAX);
        config.setMinimumIdle(0);
        return new HikariDataSource(config);
    }

    /** PgQ queues in one database. Stores keys and values as text, but not headers. Thread-safe. */
    private static final class PgQDriver implements Driver {
        private static final int POLL_MIN_MS = 5;
        private static final int POLLS_PER_TICK = 4;

        private final HikariDataSource database;
        private final PgQStatements statements;
        private final PgQTicker ticker;
        private final List<CallGroups> groups = new CopyOnWriteArrayList<>();
        private final Options options;

        PgQDriver(HikariDataSource database, Options options) {
            this.database = database;
            this.statements = new PgQStatements(database, options.bulk);
            this.options = options;
            this.ticker = new PgQTicker(statements, options.tickMs);
        }

        @Override
        public String version() throws SQLException {
            return statements.version();
        }

        @Override
        public void createStream(String name, int partitions) throws SQLException {
            statements.createQueue(name);
            ticker.add(name);
        }

        @Override
        public PublishTarget publisher(String stream) {
            CallGroups grouped =
                    new CallGroups(options.lanes, options.groupEvents, events -> statements.insert(stream, events));
            groups.add(grouped);
            return grouped.target(options.groupEvents > 1);
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) throws SQLException {
            statements.register(stream, consumer);
            long pauseMs = Math.max(POLL_MIN_MS, options.tickMs / POLLS_PER_TICK);
            return PollingConsumer.start(
                    "pgq-" + stream,
                    () -> deliverNextBatch(stream, consumer, listener) ? 0 : pauseMs,
                    listener::failed);
        }

        /** Returns whether there was a batch. Finishes it after its delivery. */
        private boolean deliverNextBatch(String queue, String consumer, DeliveryListener listener) throws SQLException {
            Long batch = statements.nextBatch(queue, consumer);
            if (batch == null) {
                return false;
            }
            List<Event> events = statements.events(batch);
            if (!events.isEmpty()) {
                listener.delivered(events);
            }
            statements.finish(batch);
            return true;
        }

        /**
         * Not supported.
         *
         * @throws UnsupportedOperationException always, because PgQ reclaims space only by table rotation
         */
        @Override
        public void clear(String stream) {
            throw new UnsupportedOperationException("PgQ reclaims space only by table rotation");
        }

        @Override
        public void close() {
            groups.forEach(CallGroups::close);
            ticker.close();
            database.close();
        }
    }
}
