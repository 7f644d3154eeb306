package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.process.PgBouncer;
import io.eventsql.fixture.process.ServerSessions;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: the outbox works through PgBouncer in transaction mode with a role whose default isolation level is not READ
 * COMMITTED, and leaves nothing behind on a server connection, which other clients use next.
 *
 * <p>Method: few server connections for each database, shared by all clients, which are inspected afterwards. Skipped unless
 * the program {@code pgbouncer} is installed.
 */
@Timeout(180)
class OutboxThroughPgBouncerIT {
    private static final String STREAM = "bounced";
    private static final int CALLS = 10;
    private static final int EVENTS_PER_CALL = 10;
    private static final int SERVER_CONNECTIONS = 4;

    private static EmbeddedEventsDb server;

    @TempDir
    private Path folder;

    @BeforeAll
    static void startServer() {
        assumeThat(PgBouncer.program())
                .as("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)")
                .isPresent();
        server = EmbeddedEventsDb.builder().start();
    }

    @AfterAll
    static void stopServer() {
        if (server != null) {
            server.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"read committed", "serializable"})
    void relay_anyDefaultIsolation_movesEventsAndLeavesNothingOnTheSession(String isolation) throws Exception {
        List<String> names = Stream.of("shard_a_", "shard_b_", "standalone_")
                .map(prefix -> prefix + isolation.replace(' ', '_'))
                .toList();
        names.forEach(server::createDatabase);
        Sql.execute(
                server.adminDataSource(),
                "ALTER ROLE " + server.username() + " SET default_transaction_isolation = '" + isolation + "'");
        try (PgBouncer pgBouncer =
                PgBouncer.start(PgBouncer.program().orElseThrow(), folder, server, SERVER_CONNECTIONS)) {
            List<HikariDataSource> pools = new ArrayList<>();
            try {
                names.forEach(name -> pools.add(pgBouncer.pool(name, config -> {})));
                publishAndRelay(pools);
                for (DataSource pool : pools) {
                    ServerSessions.assertUnchanged(pool, SERVER_CONNECTIONS, isolation);
                }
            } finally {
                pools.forEach(HikariDataSource::close);
            }
        }
    }

    private static void publishAndRelay(List<HikariDataSource> pools) throws SQLException {
        List<HikariDataSource> shards = pools.subList(0, 2);
        try (EventSql eventSql = EventSql.builder(shards)
                .outbox(pools.getLast())
                .settings(Settings.builder().outboxLease(Duration.ofSeconds(2)).build())
                .build()) {
            eventSql.createStream(TestStreams.of(STREAM).withPartitions(1));
            List<Event> events = IntStream.range(0, EVENTS_PER_CALL)
                    .mapToObj(i -> Event.ofText("key" + i, "x"))
                    .toList();
            List<HikariDataSource> outboxes = List.of(pools.getFirst(), pools.getLast());
            for (int call = 0; call < CALLS; call++) {
                for (DataSource outbox : outboxes) {
                    try (Connection transaction = outbox.getConnection()) {
                        transaction.setAutoCommit(false);
                        eventSql.outbox().publishAll(transaction, STREAM, events);
                        transaction.commit();
                    }
                }
            }
            await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                long stored = 0;
                for (DataSource shard : shards) {
                    stored += Sql.queryLong(shard, "SELECT count(*) FROM eventsql.events_" + STREAM);
                }
                assertThat(stored).isEqualTo(2L * CALLS * EVENTS_PER_CALL);
            });
        }
    }
}
