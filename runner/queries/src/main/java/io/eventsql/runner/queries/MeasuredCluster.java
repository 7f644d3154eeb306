package io.eventsql.runner.queries;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.load.LoadClock;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** An embedded server with the stream of positions on one or several shards. */
final class MeasuredCluster implements AutoCloseable {
    private static final int PARTITIONS = 4;
    private static final int CALL_EVENTS = 1_000;
    private static final int POOL_CONNECTIONS = 20;

    private final EmbeddedEventsDb server = EmbeddedEventsDb.builder().start();
    private final List<String> urls = new ArrayList<>();
    private final List<HikariDataSource> pools = new ArrayList<>();
    private final EventSql eventSql;

    MeasuredCluster(int shards) {
        for (int i = 0; i < shards; i++) {
            String name = "queries_" + i;
            HikariConfig config = new HikariConfig();
            config.setDataSource(server.createDatabase(name));
            config.setMaximumPoolSize(POOL_CONNECTIONS);
            pools.add(new HikariDataSource(config));
            urls.add(server.jdbcUrl(name));
        }
        eventSql = EventSql.builder(pools).build();
        eventSql.createStream(StreamSpec.of(Positions.STREAM).withPartitions(PARTITIONS));
    }

    EventSql eventSql() {
        return eventSql;
    }

    List<DataSource> dataSources() {
        return List.copyOf(pools);
    }

    /** Returns the options of the tables in {@code positions.sql}. */
    Map<String, String> options() {
        return Map.of("url", String.join(";", urls), "username", server.username(), "password", server.password());
    }

    /** Returns version and settings of the server. */
    DatabaseInfo databaseInfo() throws SQLException {
        DatabaseAddress address = new DatabaseAddress(urls.getFirst(), server.username(), server.password());
        return DatabaseInfo.read(0, address, LoadClock.SYSTEM);
    }

    /** Publishes events whose sensors' clocks are a millisecond apart. */
    void publish(long events, long startMs, Positions positions) {
        for (long first = 0; first < events; first += CALL_EVENTS) {
            List<Event> call = new ArrayList<>();
            for (long number = first; number < Math.min(events, first + CALL_EVENTS); number++) {
                call.add(positions.next(number, startMs + number));
            }
            eventSql.publisher().publishAll(Positions.STREAM, call);
        }
    }

    /** Publishes at a rate until the time is over, with the current time as that of the sensors. */
    void publishAtRate(int eventsPerSecond, long seconds, Positions positions) throws InterruptedException {
        long begun = System.nanoTime();
        long number = 0;
        for (long now = begun; now - begun < TimeUnit.SECONDS.toNanos(seconds); now = System.nanoTime()) {
            long due = (now - begun) * eventsPerSecond / TimeUnit.SECONDS.toNanos(1);
            List<Event> call = new ArrayList<>();
            for (; number < due && call.size() < CALL_EVENTS; number++) {
                call.add(positions.next(number, System.currentTimeMillis()));
            }
            if (!call.isEmpty()) {
                eventSql.publisher().publishAll(Positions.STREAM, call);
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }
    }

    @Override
    public void close() {
        eventSql.close();
        pools.forEach(HikariDataSource::close);
        server.close();
    }
}
