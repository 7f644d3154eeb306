package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: where READ COMMITTED is not the default isolation level, everything works in transactions of its own, and one
 * warning per database names the remedy. Method: the default of the database is another one, from the start or from a
 * moment at which the process runs.
 */
@Timeout(120)
class DefaultIsolationIT {
    private static final String STREAM = "isolated";

    private static void setDefault(DataSource database, String isolation) throws SQLException {
        String name = Sql.query(database, "SELECT current_database()").getFirst();
        Sql.execute(database, "ALTER DATABASE " + name + " SET default_transaction_isolation = '" + isolation + "'");
        String now = Sql.query(database, "SELECT clock_timestamp()").getFirst();
        // Again until there is none: one that was being opened has the former default, too.
        await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.query(
                                database,
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                        + " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                                        + " AND backend_type = 'client backend' AND backend_start < '" + now + "'")
                        .isEmpty());
    }

    private static void assertPublishesAndConsumes(EventSql eventSql, String consumer, int number) {
        List<EventPosition> positions = eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(0, 20)
                                .mapToObj(i -> Event.ofText("key" + i, number + "-" + i))
                                .toList());
        assertThat(positions).hasSize(20);
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(STREAM, consumer), handled::add);
        handled.awaitSize(number * 20).assertOnceAndInOrder();
    }

    @Test
    void open_otherDefault_worksAndWarnsOncePerShard() throws SQLException {
        String isolation = "repeatable read";
        DataSource one = TestCluster.newDatabase();
        DataSource two = TestCluster.newDatabaseWithTables();
        setDefault(one, isolation);
        setDefault(two, isolation);
        try (CapturedLog log = CapturedLog.of("sql");
                HikariDataSource onePool = TestCluster.pool(one);
                HikariDataSource twoPool = TestCluster.pool(two);
                EventSql eventSql = EventSql.builder(List.of(onePool, twoPool)).build()) {
            eventSql.createStream(TestStreams.of(STREAM).withPartitions(2));
            assertPublishesAndConsumes(eventSql, "c", 1);
            assertThat(log.lines())
                    .hasSize(2)
                    .allSatisfy(line -> assertThat(line)
                            .contains(
                                    "default isolation level",
                                    isolation,
                                    "ALTER ROLE " + TestCluster.server().username()
                                            + " SET default_transaction_isolation = 'read committed'"))
                    .anySatisfy(line -> assertThat(line).contains("database 1 of 2"))
                    .anySatisfy(line -> assertThat(line).contains("database 2 of 2"));
        }
    }

    @Test
    void open_readCommitted_doesNotWarn() {
        try (CapturedLog log = CapturedLog.of("sql");
                HikariDataSource pool = TestCluster.pool(TestCluster.newDatabaseWithTables());
                EventSql eventSql = EventSql.builder(pool).build()) {
            eventSql.createStream(TestStreams.of(STREAM).withPartitions(2));
            assertPublishesAndConsumes(eventSql, "c", 1);
            assertThat(log.lines()).isEmpty();
        }
    }

    @Test
    void publish_defaultChangesWhileRunning_continuesInTransactionsAndWarnsOnce() throws SQLException {
        DataSource database = TestCluster.newDatabaseWithTables();
        try (CapturedLog log = CapturedLog.of("sql");
                HikariDataSource pool = TestCluster.pool(database);
                EventSql eventSql = EventSql.builder(pool).build()) {
            eventSql.createStream(TestStreams.of(STREAM).withPartitions(2));
            assertPublishesAndConsumes(eventSql, "before", 1);
            setDefault(database, "serializable");

            assertPublishesAndConsumes(eventSql, "after", 2);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> eventSql.positions(STREAM, "before").stream().allMatch(p -> p.lag() == 0));
            assertThat(log.lines())
                    .filteredOn(line -> line.contains("default isolation level"))
                    .singleElement()
                    .asString()
                    .contains("append requires isolation level READ COMMITTED, not serializable", "ALTER ROLE");
            assertThat(Sql.query(pool, "SHOW default_transaction_isolation")).containsExactly("serializable");
        }
    }
}
