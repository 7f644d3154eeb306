package io.eventsql.kafka.connect;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;

/** Two shards on a server that the tests of this JVM share, and the core library that publishes to them. */
final class ConnectFixture implements AutoCloseable {
    private static final int SHARDS = 2;
    private static final AtomicInteger NUMBERS = new AtomicInteger();
    /** A database with the library's empty tables, to be copied, which is faster than migrating each. */
    private static final String TEMPLATE = "connect_tables";

    final EventSql eventSql;
    private final EventsDb server = Server.DB;
    private final List<DataSource> databases = new ArrayList<>();
    private final List<HikariDataSource> pools = new ArrayList<>();
    private final List<String> urls = new ArrayList<>();

    private static final class Server {
        static final EventsDb DB = EventsDb.start();

        static {
            try {
                new Migrator(new SqlSchema("eventsql"), true)
                        .migrate(new Database(DB.createDatabase(TEMPLATE), Duration.ofSeconds(30)));
            } catch (SQLException e) {
                throw new ExceptionInInitializerError(e);
            }
        }
    }

    ConnectFixture() {
        for (int i = 0; i < SHARDS; i++) {
            String name = "connect_" + NUMBERS.incrementAndGet();
            databases.add(server.createDatabase(name, TEMPLATE));
            urls.add(server.jdbcUrl(name));
            pools.add(pool(databases.get(i)));
        }
        eventSql = EventSql.builder(pools).build();
    }

    private static HikariDataSource pool(DataSource database) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(database);
        config.setMaximumPoolSize(20);
        config.setMinimumIdle(0);
        return new HikariDataSource(config);
    }

    /** Moves keys to a third shard, whose database is not in {@link #properties}. */
    void moveKeysToAnotherShard() {
        pools.add(pool(server.createDatabase("connect_" + NUMBERS.incrementAndGet(), TEMPLATE)));
        try (EventSql three = EventSql.builder(pools).addShards().build()) {
            three.moveShards(List.of(0, 1, 2));
        }
    }

    /** Publishes the numbers of a range as text, with the keys {@code k0} to {@code k9}. */
    void publish(String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(
                                        n -> Event.ofText("k" + n % 10, "" + n).withHeader("half", "" + n / 2))
                                .toList());
    }

    /** Returns the JDBC URLs of the shards, in the order of their creation. */
    List<String> urls() {
        return urls;
    }

    /** Returns the configuration of a connector that reads a stream, with further options. */
    Map<String, String> properties(String stream, String... options) {
        List<String> inAnyOrder = new ArrayList<>(urls);
        Collections.reverse(inAnyOrder);
        Map<String, String> properties = new HashMap<>(Map.of(
                "connection.url",
                String.join(";", inAnyOrder),
                "connection.user",
                server.username(),
                "connection.password",
                server.password(),
                "streams",
                stream,
                "poll.interval.ms",
                "1",
                "batch.events.max",
                "50"));
        for (int i = 0; i < options.length; i += 2) {
            properties.put(options[i], options[i + 1]);
        }
        return properties;
    }

    /** Executes a statement on all shards. */
    void execute(String sql) {
        for (DataSource database : databases) {
            try (Connection connection = database.getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute(sql);
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    @Override
    public void close() {
        eventSql.close();
        pools.forEach(HikariDataSource::close);
    }
}
