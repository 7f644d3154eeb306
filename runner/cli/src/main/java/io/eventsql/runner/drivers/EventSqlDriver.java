package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServer;
import io.eventsql.runner.driver.Deliveries;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSqlTarget;
import java.sql.SQLException;
import java.util.TreeSet;

/** The library over the databases of the environment. Thread-safe. */
final class EventSqlDriver implements Driver {
    private final Databases databases;
    private final EventSql eventSql;
    private final EventSqlOptions options;
    private final String version;

    private EventSqlDriver(Databases databases, EventSql eventSql, EventSqlOptions options, String version) {
        this.databases = databases;
        this.eventSql = eventSql;
        this.options = options;
        this.version = version;
    }

    static EventSqlDriver open(DriverSettings settings) throws SQLException {
        EventSqlOptions options = new EventSqlOptions(settings.options());
        Databases databases = Databases.open(DatabaseVariables.read(new Variables(settings.environment()::get)));
        try {
            EventSql eventSql = EventSql.builder(databases.dataSources())
                    .settings(options.settings())
                    .build();
            return new EventSqlDriver(databases, eventSql, options, version(eventSql));
        } catch (SQLException | RuntimeException e) {
            databases.close();
            throw e;
        }
    }

    private static String version(EventSql eventSql) throws SQLException {
        TreeSet<String> versions = new TreeSet<>();
        for (ShardInfo shard : eventSql.shards()) {
            versions.add(ShardServer.ask(shard).serverVersion());
        }
        return "PostgreSQL " + String.join(", ", versions);
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public void createStream(String name, int partitions) {
        eventSql.createStream(StreamSpec.of(name).withPartitions(partitions));
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new EventSqlTarget(eventSql.publisher(), stream);
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, Deliveries deliveries) {
        return eventSql.subscribeBatch(
                options.consumer(stream, consumer),
                events -> deliveries.delivered(
                        events.stream().map(EventSqlDriver::event).toList()));
    }

    private static Event event(StoredEvent stored) {
        return new Event(stored.key(), stored.value(), stored.headers());
    }

    @Override
    public void clear(String stream) {
        throw new UnsupportedOperationException("this driver cannot clear a stream");
    }

    @Override
    public void close() {
        eventSql.close();
        databases.close();
    }
}
