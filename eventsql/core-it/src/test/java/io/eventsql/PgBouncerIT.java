package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.process.PgBouncer;
import io.eventsql.fixture.process.ServerSessions;
import java.nio.file.Path;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: publishing, consuming in every way and clearing work through PgBouncer in transaction mode, whatever the role's
 * default isolation level, and leave nothing behind on a server connection, which other clients use next: no setting, lock,
 * channel or prepared statement. The outbox: {@code OutboxThroughPgBouncerIT}.
 *
 * <p>Method: two processes share few server connections, which are inspected afterwards. Signals do not pass, so consumers
 * poll. Skipped unless the program {@code pgbouncer} is installed.
 */
@Timeout(180)
class PgBouncerIT {
    private static final String STREAM = "bounced";
    private static final int EVENTS = 200;
    private static final int CONNECTIONS = 6;

    @TempDir
    private Path folder;

    /** A server of its own, because the role's default isolation level changes. */
    private static EmbeddedEventsDb eventsDb;

    private DataSource database;

    @BeforeAll
    static void startServer() {
        assumeThat(PgBouncer.program())
                .as("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)")
                .isPresent();
        eventsDb = EmbeddedEventsDb.builder().start();
    }

    @AfterAll
    static void stopServer() {
        if (eventsDb != null) {
            eventsDb.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"read committed", "serializable"})
    void transactionMode_anyDefaultIsolation_everythingWorksAndNothingIsLeft(String isolation) throws Exception {
        Sql.execute(
                eventsDb.adminDataSource(),
                "ALTER ROLE " + eventsDb.username() + " SET default_transaction_isolation = '" + isolation + "'");
        String name = isolation.replace(' ', '_');
        database = eventsDb.createDatabase(name);
        Settings settings = Settings.builder()
                .lease(Duration.ofSeconds(2))
                .pollInterval(Duration.ofMillis(200))
                .build();
        try (PgBouncer bouncer = PgBouncer.start(PgBouncer.program().orElseThrow(), folder, eventsDb, CONNECTIONS);
                HikariDataSource firstPool = bouncer.pool(name, config -> {});
                HikariDataSource secondPool = bouncer.pool(name, config -> {})) {
            try (EventSql first = EventSql.builder(firstPool).settings(settings).build();
                    EventSql second =
                            EventSql.builder(secondPool).settings(settings).build()) {
                first.createStream(StreamSpec.of(STREAM).withPartitions(2));
                publishAndConsume(first, second);
                reportConsumers(first, second);
                clearWhilePublishing(first, second);
            }
            ServerSessions.assertUnchanged(firstPool, CONNECTIONS, isolation);
        }
    }

    /** The lease is a row, not a lock of a session, which other clients would use next. */
    private static void reportConsumers(EventSql first, EventSql second) {
        for (int i = 0; i < CONNECTIONS; i++) {
            assertThat(first.reportConsumers(0, 10, Duration.ofMinutes(1))).isPresent();
            assertThat(second.reportConsumers(0, 10, Duration.ofMinutes(1))).isEmpty();
        }
        assertThat(second.consumers().unavailableShards()).isEmpty();
        assertThat(second.consumers().consumers()).hasSize(2);
    }

    private void publishAndConsume(EventSql first, EventSql second) throws SQLException {
        Sql.execute(database, "CREATE TABLE effect (text text)");
        Handled plain = new Handled();
        ConsumerSpec spec = ConsumerSpec.of(STREAM, "plain")
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
            subscriptions.add(process.subscribeTransactional(ConsumerSpec.of(STREAM, "once"), (event, connection) -> {
                try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
                    insert.setString(1, event.text());
                    insert.execute();
                }
            }));
        }
        List<Event> events = IntStream.range(0, EVENTS)
                .mapToObj(i -> Event.ofText("key-" + i % 20, Integer.toString(i)))
                .toList();
        first.publisher().publishAll(STREAM, events.subList(0, EVENTS / 2));
        second.publisher().publishAll(STREAM, events.subList(EVENTS / 2, EVENTS));
        plain.awaitSize(EVENTS - 1);
        await().atMost(Duration.ofSeconds(120))
                .until(() -> first.positions(STREAM, "once").stream().allMatch(p -> p.lag() == 0));
        subscriptions.forEach(Subscription::close);
        assertThat(first.consumer(STREAM, "plain").parkedEvents(10)).hasSize(1);
        assertThat(Sql.query(database, "SELECT text FROM effect"))
                .containsExactlyInAnyOrderElementsOf(
                        events.stream().map(Event::text).toList());
    }

    private void clearWhilePublishing(EventSql clearing, EventSql publishing) throws Exception {
        AtomicBoolean cleared = new AtomicBoolean();
        CompletableFuture<Void> published = CompletableFuture.runAsync(() -> {
            for (int i = 0; !cleared.get(); i++) {
                publishing.publisher().publish(STREAM, Event.ofText("key-" + i % 20, "published during the clearing"));
            }
        });
        try {
            clearing.clear(STREAM, clearing.previewClear(STREAM).confirmation());
        } finally {
            cleared.set(true);
            published.get(120, TimeUnit.SECONDS);
        }
        assertThat(Sql.query(
                        database,
                        "SELECT next_offset - log_start - (SELECT count(*) FROM eventsql.events_" + STREAM
                                + " e WHERE e.partition = h.partition AND e.event_offset >= h.log_start)"
                                + " FROM eventsql.partition_head h WHERE stream = '" + STREAM + "'"))
                .as("events after the start of each partition's log that are missing")
                .containsOnly("0");
    }
}
