package io.eventsql.microbenchmarks;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A real database, the library, and events to publish to it. Not thread-safe. */
final class Server implements AutoCloseable {
    /** The bytes of a value: that of the other benchmarks' events. */
    private static final int VALUE_BYTES = 200;

    private static final int KEYS = 1_000;

    private final EmbeddedEventsDb database;
    private final HikariDataSource pool;
    private final EventSql eventSql;

    Server() {
        // What is allocated does not depend on the disk.
        database = EmbeddedEventsDb.builder().durable(false).start();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(database.jdbcUrl());
        config.setUsername(database.username());
        config.setPassword(database.password());
        pool = new HikariDataSource(config);
        eventSql = EventSql.builder(pool).build();
    }

    EventSql eventSql() {
        return eventSql;
    }

    /** Creates a stream with one partition and publishes events to it; returns the position of the first one. */
    EventPosition createStream(StreamSpec stream, int events, int headers) {
        eventSql.createStream(stream.withPartitions(1));
        int batch = 1_000;
        for (int published = 0; published < events; published += batch) {
            eventSql.publisher().publishAll(stream.name(), events(Math.min(batch, events - published), headers));
        }
        return new EventPosition(stream.name(), 0, 0, 0);
    }

    /** Returns events with keys, of about 230 bytes without headers. */
    static List<Event> events(int count, int headers) {
        Map<String, String> some = headers == 0
                ? Map.of()
                : Map.of("trace", "00-4bf92f3577b34da6a3ce929d0e0e4736", "content-type", "application/json");
        byte[] value = "x".repeat(VALUE_BYTES).getBytes(StandardCharsets.UTF_8);
        List<Event> events = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            events.add(new Event("key-" + i % KEYS, value, some));
        }
        return events;
    }

    @Override
    public void close() {
        eventSql.close();
        pool.close();
        database.close();
    }
}
