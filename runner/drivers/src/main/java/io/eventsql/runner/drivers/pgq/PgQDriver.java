package io.eventsql.runner.drivers.pgq;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.KeyedExecutor;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;

/** PgQ queues in one database. Stores keys and values as text, but not headers. Thread-safe. */
final class PgQDriver implements Driver {
    private static final int CONNECTIONS_MAX = 20;
    private static final int ASYNC_CALLS = 8;
    private static final int DEFAULT_TICK_MS = 100;
    private static final int TICK_MAX_MS = 60_000;

    private final HikariDataSource database;
    private final PgQStatements statements;
    private final PgQTicker ticker;
    private final KeyedExecutor executor = new KeyedExecutor(ASYNC_CALLS);
    private final List<PgQSubscription> subscriptions = new CopyOnWriteArrayList<>();
    private final int tickMs;

    private PgQDriver(HikariDataSource database, int tickMs) {
        this.database = database;
        this.statements = new PgQStatements(database);
        this.tickMs = tickMs;
        this.ticker = new PgQTicker(statements, tickMs);
    }

    /**
     * @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it
     * @throws SQLException if the extension is not installed in the database
     */
    static PgQDriver open(DriverSettings settings) throws SQLException {
        List<DatabaseAddress> addresses = DatabaseVariables.read(new Variables(settings.environment()::get));
        if (addresses.size() > 1) {
            throw new IllegalArgumentException(
                    "Driver pgq requires exactly one database, but " + addresses.size() + " are configured");
        }
        int tickMs = new Variables(settings.options()::get).number("tick_ms", DEFAULT_TICK_MS, 1, TICK_MAX_MS);
        PgQDriver driver = new PgQDriver(pool(addresses.getFirst()), tickMs);
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

    @Override
    public String version() {
        try {
            return statements.version();
        } catch (SQLException e) {
            throw new IllegalStateException("Cannot determine the version of the database: " + e.getMessage(), e);
        }
    }

    @Override
    public void createStream(String name, int partitions) throws SQLException {
        statements.createQueue(name);
        ticker.add(name);
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                try {
                    statements.insert(stream, events);
                } catch (SQLException e) {
                    throw new IllegalStateException("The insert failed: " + e.getMessage(), e);
                }
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return executor.submit(events, () -> publish(events));
            }
        };
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) throws SQLException {
        statements.register(stream, consumer);
        PgQSubscription subscription =
                new PgQSubscription(statements, new PgQSubscription.QueueConsumer(stream, consumer, tickMs), listener);
        subscriptions.add(subscription);
        return () -> {
            subscriptions.remove(subscription);
            subscription.close();
        };
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
        subscriptions.forEach(PgQSubscription::close);
        executor.close();
        ticker.close();
        database.close();
    }
}
