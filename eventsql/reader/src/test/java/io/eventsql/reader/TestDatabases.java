package io.eventsql.reader;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/** New databases on a server that the tests of this JVM share, and the core library over them, which publishes. */
final class TestDatabases implements AutoCloseable {
    private static final AtomicInteger NUMBERS = new AtomicInteger();
    /** A database with the library's empty tables, to be copied, which is faster than migrating each. */
    private static final String TEMPLATE = "reader_tables";

    /** Unpooled, by number of the shard. */
    final List<DataSource> shards = new ArrayList<>();

    final EventSql eventSql;
    private final List<HikariDataSource> pools = new ArrayList<>();

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

    TestDatabases(int shards) {
        for (int i = 0; i < shards; i++) {
            DataSource database = newDatabase();
            this.shards.add(database);
            pools.add(pool(database));
        }
        eventSql = EventSql.builder(pools).build();
        List<String> numbers = this.shards.stream()
                .map(shard ->
                        query(shard, "SELECT shard_number FROM eventsql.shard").get(0))
                .toList();
        List<DataSource> byNumber = new ArrayList<>(this.shards);
        for (int i = 0; i < shards; i++) {
            byNumber.set(Integer.parseInt(numbers.get(i)), this.shards.get(i));
        }
        this.shards.clear();
        this.shards.addAll(byNumber);
    }

    static EventsDb server() {
        return Server.DB;
    }

    /** Creates a database that holds only the library's empty tables and belongs to no cluster yet. */
    static DataSource newDatabase() {
        return Server.DB.createDatabase("reader_" + NUMBERS.incrementAndGet(), TEMPLATE);
    }

    static HikariDataSource pool(DataSource database) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(database);
        config.setMaximumPoolSize(20);
        config.setMinimumIdle(0);
        return new HikariDataSource(config);
    }

    static void execute(DataSource database, String... statements) {
        try (Connection connection = database.getConnection();
                Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns the first column of all rows as text. */
    static List<String> query(DataSource database, String sql, Object... parameters) {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setObject(i + 1, parameters[i]);
            }
            try (ResultSet row = statement.executeQuery()) {
                List<String> rows = new ArrayList<>();
                while (row.next()) {
                    rows.add(row.getString(1));
                }
                return rows;
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        eventSql.close();
        pools.forEach(HikariDataSource::close);
    }
}
