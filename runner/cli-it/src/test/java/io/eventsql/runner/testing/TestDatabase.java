package io.eventsql.runner.testing;

import io.eventsql.Settings;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/**
 * A database on a server that the tests of this JVM share: a copy of one with the library's empty tables, which is faster than
 * migrating each. {@link #close()} drops it.
 *
 * @param name its name on the server
 * @param dataSource unpooled connections
 */
public record TestDatabase(String name, DataSource dataSource) implements AutoCloseable {
    private static final String TABLES = "tables";
    private static final AtomicInteger DATABASES = new AtomicInteger();

    private static final class Shared {
        static final EventsDb SERVER = EventsDb.start();

        static {
            Settings settings = Settings.builder().build();
            try {
                new Migrator(new SqlSchema(settings.schema()), true)
                        .migrate(new Database(SERVER.createDatabase(TABLES), settings.networkTimeout()));
            } catch (SQLException e) {
                throw new ExceptionInInitializerError(e);
            }
        }
    }

    /** Creates a database that belongs to no cluster yet. */
    public static TestDatabase create() {
        String name = "test_" + DATABASES.incrementAndGet();
        return new TestDatabase(name, Shared.SERVER.createDatabase(name, TABLES));
    }

    /** Executes a statement as the superuser of the server. */
    public static void executeAsAdmin(String sql) throws SQLException {
        try (Connection connection = Shared.SERVER.adminDataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    public String url() {
        return Shared.SERVER.jdbcUrl(name);
    }

    /** Returns the environment variables of a runner that uses this database. */
    public Map<String, String> environment() {
        return environment(url());
    }

    /** Returns the environment variables of a runner that uses databases of the server. */
    public static Map<String, String> environment(String urls) {
        return Map.of("DB_URLS", urls, "DB_USER", Shared.SERVER.username(), "DB_PASSWORD", Shared.SERVER.password());
    }

    @Override
    public void close() throws SQLException {
        executeAsAdmin("DROP DATABASE " + name + " WITH (FORCE)");
    }
}
