package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: the number of partitions does not meet the limit of the server's lock table. Method: a server with a quarter of
 * PostgreSQL's default of locks for each transaction, and a stream with about a quarter of the most partitions: if it were created in
 * one transaction, that would take more locks than the server has.
 */
@Timeout(300)
class LargeStreamIT {
    private static final StreamSpec LARGE = StreamSpec.of("large").withPartitions(300);
    private static final String TABLES_OF_PARTITIONS =
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'eventsql.events_large'::regclass";

    private static EmbeddedEventsDb eventsDb;
    private static HikariDataSource pool;

    @BeforeAll
    static void start() {
        eventsDb = EmbeddedEventsDb.builder()
                .setting("max_connections", "100")
                .setting("max_locks_per_transaction", "16")
                .durable(false)
                .start();
        pool = Pools.pool(eventsDb);
    }

    @AfterAll
    static void stop() {
        pool.close();
        eventsDb.close();
    }

    private static EventSql open() {
        return EventSql.builder(pool)
                .settings(
                        Settings.builder().publishTimeout(Duration.ofMinutes(1)).build())
                .build();
    }

    @Test
    void createStream_manyPartitionsByTwoProcessesAtOnce_thenPublishAndConsume() throws Exception {
        try (EventSql one = open();
                EventSql two = open();
                ExecutorService executor = Executors.newFixedThreadPool(2)) {
            List<Future<?>> created = List.of(
                    executor.submit(() -> one.createStream(LARGE)), executor.submit(() -> two.createStream(LARGE)));
            for (Future<?> each : created) {
                each.get();
            }
            assertThat(Sql.queryLong(pool, TABLES_OF_PARTITIONS)).isEqualTo(LARGE.partitions());

            List<Event> events = IntStream.range(0, 900)
                    .mapToObj(i -> Event.ofText("key" + i, "" + i))
                    .toList();
            assertThat(one.publisher().publishAll("large", events))
                    .extracting(EventPosition::partition)
                    .satisfies(partitions ->
                            assertThat(partitions.stream().distinct()).hasSizeGreaterThan(260));
            Handled handled = new Handled();
            try (Subscription ignored = two.subscribe(ConsumerSpec.of("large", "c"), handled::add)) {
                handled.awaitSize(900).assertOnceAndInOrder();
            }
        }
    }

    /** An interrupted creation leaves partitions without tables: an append adds what it misses, and a second call the rest. */
    @Test
    void createStream_interrupted_isCompletedByPublishersAndByTheNextCall() throws SQLException {
        StreamSpec interrupted = StreamSpec.of("interrupted").withPartitions(30).withSegmentSize(100);
        String count = TABLES_OF_PARTITIONS.replace("events_large", "events_interrupted");
        try (EventSql eventSql = open()) {
            Sql.execute(
                    pool,
                    "SELECT eventsql.create_stream_v1('interrupted', 30, 100, false, 1)",
                    "SELECT eventsql.create_partitions_v1(stream_id, 10) FROM eventsql.stream WHERE name = 'interrupted'");
            assertThat(Sql.queryLong(pool, count)).isEqualTo(10);

            for (int i = 0; i < 150; i++) {
                eventSql.publisher().publish("interrupted", Event.ofText("key" + i, "" + i));
            }
            Handled handled = new Handled();
            try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("interrupted", "c"), handled::add)) {
                handled.awaitSize(150).assertOnceAndInOrder();
            }
            eventSql.previewClear("interrupted");

            eventSql.createStream(interrupted);

            assertThat(Sql.queryLong(pool, count)).isEqualTo(30);
        }
    }

    @Test
    void createStream_tableOfThatNameExists_failsAndLeavesNothing() throws SQLException {
        try (EventSql eventSql = open()) {
            Sql.execute(pool, "CREATE TABLE eventsql.events_taken (x int)");
            assertThatThrownBy(() -> eventSql.createStream(StreamSpec.of("taken")))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("events_taken");
            assertThat(eventSql.streams()).extracting(StreamSpec::name).doesNotContain("taken");
        }
    }
}
