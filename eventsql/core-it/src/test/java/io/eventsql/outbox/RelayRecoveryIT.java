package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a relay that lacks something in its database says what, once, and relays as soon as it is there.
 *
 * <p>Method: rows, tables and rights are taken away while the relay runs, and given back after the log line.
 */
@Timeout(120)
class RelayRecoveryIT {
    private static final String STREAM = "bills";

    private TestCluster cluster;
    private DataSource database;
    private EventSql eventSql;
    private CapturedLog log;
    private int published;

    @BeforeEach
    void open() throws SQLException {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
        eventSql = open(database);
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(1));
        publish();
        awaitStored();
        log = CapturedLog.ofRelay();
    }

    private static EventSql open(DataSource dataSource) {
        return EventSql.builder(dataSource)
                .settings(Settings.builder().outboxLease(Duration.ofSeconds(1)).build())
                .build();
    }

    @AfterEach
    void close() {
        log.close();
        eventSql.close();
        cluster.close();
    }

    private void publish() throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, STREAM, Event.ofText("key", "x"));
            transaction.commit();
        }
        published++;
    }

    private void awaitStored() {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(
                        () -> assertThat(Sql.queryLong(database, "SELECT count(*) FROM eventsql.events_" + STREAM))
                                .isEqualTo(published));
    }

    /** Waits for a line with all these parts, and asserts that lines are not repeated. */
    private void awaitLogged(String... parts) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(log.lines())
                        .anySatisfy(line -> assertThat(line).contains(parts)));
        assertThat(log.lines()).hasSizeLessThan(4);
    }

    @Test
    void relay_leaseRowIsDeleted_namesTheRemedyAndRecovers() throws SQLException {
        Sql.execute(database, "DELETE FROM eventsql.outbox_relay");
        awaitLogged("WARN", "shard0", "outbox_relay", "INSERT INTO eventsql.outbox_relay DEFAULT VALUES", "retr");
        publish();
        Sql.execute(database, "INSERT INTO eventsql.outbox_relay DEFAULT VALUES");
        awaitStored();
    }

    @ParameterizedTest
    @ValueSource(strings = {"outbox_relay", "outbox"})
    void relay_tableIsMissing_namesItAndRecovers(String table) throws SQLException {
        Sql.execute(database, "ALTER TABLE eventsql." + table + " RENAME TO away");
        awaitLogged("WARN", "shard0", "eventsql." + table, "retr");
        Sql.execute(database, "ALTER TABLE eventsql.away RENAME TO " + table);
        publish();
        awaitStored();
    }

    @ParameterizedTest
    @CsvSource({"UPDATE, outbox_relay", "DELETE, outbox", "SELECT, outbox"})
    void relay_roleLacksARight_namesItAndRecovers(String right, String table) throws SQLException {
        String role = "relay_" + System.nanoTime();
        Sql.execute(TestCluster.server().adminDataSource(), "CREATE ROLE " + role + " LOGIN PASSWORD 'test'");
        Sql.execute(
                database,
                "GRANT USAGE, CREATE ON SCHEMA eventsql TO " + role,
                "GRANT ALL ON ALL TABLES IN SCHEMA eventsql TO " + role,
                "GRANT ALL ON ALL SEQUENCES IN SCHEMA eventsql TO " + role);
        eventSql.close();
        String url;
        try (Connection connection = database.getConnection()) {
            url = connection.getMetaData().getURL();
        }
        try (HikariDataSource pool = Pools.pool(url, role, "test", config -> {})) {
            eventSql = open(pool);
            publish();
            awaitStored();
            Sql.execute(database, "REVOKE " + right + " ON eventsql." + table + " FROM " + role);
            publish();
            awaitLogged("WARN", "shard0", "permission denied for table " + table, "retr");
            Sql.execute(database, "GRANT " + right + " ON eventsql." + table + " TO " + role);
            awaitStored();
            eventSql.close();
        }
    }

    @Test
    void listening_failsForAnotherReason_eachIsLoggedOnceAndThatItWorksAgain() throws SQLException {
        eventSql.close();
        SwitchableDataSource switchable = new SwitchableDataSource(database);
        eventSql = open(switchable);
        publish();
        awaitStored(); // it has the lease, and listens
        try (CapturedLog details = CapturedLog.ofRelayInDetail()) {
            switchable.setUnavailable("the first reason");
            Sql.execute(
                    database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                            + " WHERE datname = current_database() AND pid <> pg_backend_pid()");
            details.awaitLine("WARN Listening on outbox", "the first reason");
            switchable.setUnavailable("the second reason");
            details.awaitLine("WARN Listening on outbox", "the second reason");
            switchable.setAvailable(true);
            details.awaitLine("INFO Listening on outbox", "works again");

            assertThat(details.lines("Listening on outbox").stream().filter(line -> line.contains("the first reason")))
                    .hasSize(1);
        }
        publish();
        awaitStored();
    }

    @Test
    void polling_processThatDoesNotRelayFails_isLoggedAndThatItWorksAgain() {
        SwitchableDataSource switchable = new SwitchableDataSource(database);
        try (CapturedLog details = CapturedLog.ofRelayInDetail();
                EventSql ignored = open(switchable)) {
            for (String reason : List.of("a reason", "another reason")) {
                switchable.setUnavailable(reason);
                details.awaitLine("WARN Relaying outbox", reason);
            }
            switchable.setAvailable(true);
            details.awaitLine("INFO Relaying outbox", "works again");
        }
    }
}
