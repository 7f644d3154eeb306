package io.eventsql.flink;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.flink.sink.EventSerializer;
import io.eventsql.flink.sink.EventSqlSink;
import io.eventsql.flink.sink.EventSqlSinkBuilder;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPosition;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.jspecify.annotations.Nullable;

/**
 * Two shards on a server that the tests of this JVM share, the core library that publishes to them, and the sources that read
 * them on a mini cluster, which they share, too.
 */
public final class FlinkFixture implements AutoCloseable {
    private static final int SHARDS = 2;
    private static final int RESTARTS_MAX = 10;
    /** Many in each job. With shorter ones, a job on busy processors does little else. */
    private static final Duration CHECKPOINTS = Duration.ofMillis(200);

    private static final AtomicInteger NUMBERS = new AtomicInteger();

    public final EventSql eventSql;
    private final EmbeddedEventsDb server = Server.DB;
    private final List<DataSource> databases = new ArrayList<>();
    private final List<HikariDataSource> pools = new ArrayList<>();
    private final List<String> urls = new ArrayList<>();

    private static final class Server {
        static final String TABLES = "tables";
        static final EmbeddedEventsDb DB = EmbeddedEventsDb.builder()
                .setting("shared_buffers", "32MB")
                .setting("autovacuum_naptime", "1h") // else each database is visited four times a minute
                .start();

        static {
            Settings settings = Settings.builder().build();
            try {
                new Migrator(new SqlSchema(settings.schema()), true)
                        .migrate(new Database(DB.createDatabase(TABLES), settings.networkTimeout()));
            } catch (SQLException e) {
                throw new ExceptionInInitializerError(e);
            }
        }
    }

    public FlinkFixture() {
        for (int i = 0; i < SHARDS; i++) {
            String name = "flink_" + NUMBERS.incrementAndGet();
            databases.add(server.createDatabase(name, Server.TABLES)); // which is faster than migrating each
            urls.add(server.jdbcUrl(name));
            HikariConfig config = new HikariConfig();
            config.setDataSource(databases.get(i));
            config.setMaximumPoolSize(20);
            config.setMinimumIdle(1);
            pools.add(new HikariDataSource(config));
        }
        eventSql = EventSql.builder(pools).build();
    }

    /** Returns the server. A test that stops it restarts it. */
    public static EmbeddedEventsDb server() {
        return Server.DB;
    }

    /** Publishes JSON objects with the numbers of a range as {@code n}, and the key {@code k0} to {@code k9}. */
    public void publish(String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(n -> Event.ofText("k" + n % 10, "{\"n\": " + n + "}")
                                        .withHeader("half", "" + n / 2))
                                .toList());
    }

    public <T> EventSqlSourceBuilder<T> source(String stream, EventDeserializer<T> deserializer) {
        List<String> inAnyOrder = new ArrayList<>(urls);
        Collections.reverse(inAnyOrder);
        return EventSqlSource.builder(stream, deserializer)
                .urls(inAnyOrder.toArray(new String[0]))
                .credentials(server.username(), server.password())
                .reader(ReaderSettings.defaults().withPage(50, 1 << 20).withPollInterval(Duration.ofMillis(10)));
    }

    /** Returns a sink on these databases. */
    public <T> EventSqlSinkBuilder<T> sink(String stream, EventSerializer<T> serializer) {
        return EventSqlSink.builder(stream, serializer)
                .urls(urls.toArray(new String[0]))
                .credentials(server.username(), server.password());
    }

    /** Returns the settings of a source on these databases. */
    SourceSettings settings(String stream, StreamPosition start, @Nullable StreamPosition end, List<String> jdbcUrls) {
        return new SourceSettings(
                jdbcUrls,
                server.username(),
                server.password(),
                ReaderSettings.defaults().withPollInterval(Duration.ofMillis(1)),
                stream,
                start,
                end,
                Duration.ofMinutes(1),
                Duration.ofMinutes(1));
    }

    /** Returns the JDBC URLs of the shards, in the order of their creation. */
    public List<String> urls() {
        return urls;
    }

    /** Returns the options that a table of this cluster needs. */
    public String options(String stream) {
        return "'connector' = 'eventsql', 'url' = '%s', 'username' = '%s', 'password' = '%s', 'stream' = '%s'"
                .formatted(String.join(";", urls), server.username(), server.password(), stream);
    }

    /** Returns an environment that runs jobs on the mini cluster of this JVM, and restarts them a few times. */
    public static StreamExecutionEnvironment environment(int parallelism) {
        Configuration configuration = new Configuration();
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, RESTARTS_MAX);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(1));
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, CHECKPOINTS);
        configuration.set(CoreOptions.DEFAULT_PARALLELISM, parallelism);
        StreamExecutionEnvironment environment = FlinkCluster.environment(configuration);
        environment.setParallelism(parallelism);
        return environment;
    }

    /** Returns the rows of a query on all shards, their columns joined by a bar. */
    public List<String> query(String sql) {
        List<String> rows = new ArrayList<>();
        for (DataSource database : databases) {
            try (Connection connection = database.getConnection();
                    Statement statement = connection.createStatement()) {
                if (!statement.execute(sql)) {
                    continue;
                }
                try (ResultSet row = statement.getResultSet()) {
                    while (row.next()) {
                        List<String> columns = new ArrayList<>();
                        for (int i = 1; i <= row.getMetaData().getColumnCount(); i++) {
                            columns.add(row.getString(i));
                        }
                        rows.add(String.join("|", columns));
                    }
                }
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }
        return rows;
    }

    @Override
    public void close() {
        eventSql.close();
        pools.forEach(HikariDataSource::close);
    }
}
