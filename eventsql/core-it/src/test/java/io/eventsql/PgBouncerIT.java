package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.process.PgBouncer;
import java.nio.file.Path;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Publishing and consuming through PgBouncer in transaction mode, where the library must not rely on session state:
 * settings, locks or prepared statements. Notifications do not pass, so consumers poll. Skipped unless the program {@code
 * pgbouncer} is installed.
 */
class PgBouncerIT {
    private static final int EVENTS = 500;
    private static final int CONNECTIONS = 6;

    @TempDir
    private Path folder;

    @Test
    void transactionMode_publishAndConsumeInEveryWay_works() throws Exception {
        Optional<Path> program = PgBouncer.program();
        assumeThat(program)
                .as("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)")
                .isPresent();
        try (EmbeddedEventsDb eventsDb = EmbeddedEventsDb.builder().start();
                PgBouncer pgBouncer = PgBouncer.start(program.get(), folder, eventsDb, CONNECTIONS)) {
            publishAndConsume(eventsDb, pgBouncer);
        }
    }

    private static HikariDataSource pool(EmbeddedEventsDb eventsDb, PgBouncer pgBouncer) {
        return pgBouncer.pool(eventsDb.jdbcUrl().substring(eventsDb.jdbcUrl().lastIndexOf('/') + 1), config -> {});
    }

    private static void publishAndConsume(EmbeddedEventsDb eventsDb, PgBouncer pgBouncer) throws Exception {
        Settings settings = Settings.builder()
                .lease(Duration.ofSeconds(2))
                .pollInterval(Duration.ofMillis(200))
                .build();
        try (HikariDataSource firstPool = pool(eventsDb, pgBouncer);
                HikariDataSource secondPool = pool(eventsDb, pgBouncer);
                EventSql first = EventSql.builder(firstPool).settings(settings).build();
                EventSql second =
                        EventSql.builder(secondPool).settings(settings).build()) {
            first.createStream(StreamSpec.of("bounced").withPartitions(4));
            Sql.execute(eventsDb.dataSource(), "CREATE TABLE effect (text text)");
            Handled plain = new Handled();
            ConsumerSpec spec = ConsumerSpec.of("bounced", "plain")
                    .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                    .withFailurePolicy(FailurePolicy.DEAD_LETTER);
            List<Subscription> subscriptions = new ArrayList<>();
            for (EventSql process : List.of(first, second)) {
                subscriptions.add(process.subscribe(spec, event -> {
                    if (event.text().equals("7")) {
                        throw new IllegalStateException("not this one");
                    }
                    plain.add(event);
                }));
                subscriptions.add(process.subscribeTransactional(
                        ConsumerSpec.of("bounced", "once"), (event, connection) -> {
                            try (PreparedStatement insert =
                                    connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
                                insert.setString(1, event.text());
                                insert.execute();
                            }
                        }));
            }
            List<Event> events = IntStream.range(0, EVENTS)
                    .mapToObj(i -> Event.ofText("key-" + i % 20, Integer.toString(i)))
                    .toList();
            first.publisher().publishAll("bounced", events.subList(0, EVENTS / 2));
            second.publisher().publishAll("bounced", events.subList(EVENTS / 2, EVENTS));
            plain.awaitSize(EVENTS - 1);
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> first.positions("bounced", "once").stream().allMatch(p -> p.lag() == 0));
            subscriptions.forEach(Subscription::close);
            assertThat(first.consumer("bounced", "plain").parkedEvents(10)).hasSize(1);
            assertThat(Sql.query(eventsDb.dataSource(), "SELECT text FROM effect"))
                    .containsExactlyInAnyOrderElementsOf(
                            events.stream().map(Event::text).toList());
        }
    }
}
