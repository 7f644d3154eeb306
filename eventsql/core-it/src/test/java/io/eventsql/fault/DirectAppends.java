package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.AppendStatement.Rows;
import io.eventsql.internal.sql.SqlSchema;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** What tests of the append function share: a database, a library over it, and appends beside the library. */
abstract class DirectAppends {
    static final AppendStatement APPEND = new AppendStatement(new SqlSchema("eventsql"));
    static final int MAP_VERSION = 1;

    static EventsDb eventsDb;
    static HikariDataSource pool;
    static EventSql eventSql;

    final UUID producer = UUID.randomUUID();

    @BeforeAll
    static void start() {
        eventsDb = EventsDb.start();
        pool = Pools.pool(eventsDb);
        // Small batches, so that few segments are kept ready.
        eventSql = EventSql.builder(pool)
                .settings(Settings.builder().maxBatchEvents(100).build())
                .build();
    }

    @AfterAll
    static void stop() {
        eventSql.close();
        pool.close();
        eventsDb.close();
    }

    static void createStream(String name, int partitions) {
        eventSql.createStream(StreamSpec.of(name).withPartitions(partitions).withSegmentSize(100));
    }

    /** The events of one partition in a batch. */
    record Part(String stream, int partition, List<String> values) {
        static Part of(String stream, int partition, String... values) {
            return new Part(stream, partition, List.of(values));
        }
    }

    static Rows rows(Part... parts) throws SQLException {
        int[] streamIds = new int[parts.length];
        List<Integer> groups = new ArrayList<>();
        List<Integer> indexes = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        for (int i = 0; i < parts.length; i++) {
            streamIds[i] = (int) number("SELECT stream_id FROM eventsql.stream WHERE name = '" + parts[i].stream + "'");
            for (String value : parts[i].values) {
                groups.add(i + 1);
                indexes.add(parts[i].values.indexOf(value));
                values.add(value.getBytes(StandardCharsets.UTF_8));
            }
        }
        int size = values.size();
        return new Rows(
                Stream.of(parts).map(Part::stream).toArray(String[]::new),
                streamIds,
                Stream.of(parts).mapToInt(Part::partition).toArray(),
                Stream.of(parts).mapToInt(part -> part.values.size()).toArray(),
                groups.stream().mapToInt(Integer::intValue).toArray(),
                indexes.stream().mapToInt(Integer::intValue).toArray(),
                new String[size],
                values.toArray(byte[][]::new),
                new String[size]);
    }

    final long[] append(long number, Part... parts) throws SQLException {
        return append(producer, number, parts);
    }

    static long[] append(UUID producer, long number, Part... parts) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return APPEND.execute(connection, producer, number, MAP_VERSION, rows(parts));
        }
    }

    static String[] values(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "e" + i).toArray(String[]::new);
    }

    static void execute(String sql) throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static long number(String query) throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(query)) {
            row.next();
            return row.getLong(1);
        }
    }

    static List<Ledger.Stored> read(String stream) throws SQLException {
        return Ledger.read(stream, List.of(pool));
    }

    static void assertRefused(String state, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(state));
    }

    /** Something that may fail with a checked exception. */
    interface Call<T> {
        T run() throws Exception;
    }

    static <T> CompletableFuture<T> async(Call<T> call) {
        CompletableFuture<T> future = new CompletableFuture<>();
        Thread.ofVirtual().start(() -> {
            try {
                future.complete(call.run());
            } catch (Throwable e) {
                future.completeExceptionally(e);
            }
        });
        return future;
    }

    static void awaitAppendsWaitingForALock(int count) {
        await().atMost(Duration.ofSeconds(10))
                .until(() -> number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                + " AND query LIKE '%append_v1%'")
                        == count);
    }
}
