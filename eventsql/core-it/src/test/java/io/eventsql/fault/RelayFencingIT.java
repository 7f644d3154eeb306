package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.load.OutboxLoad;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: a relay that was frozen and has lost its lease does no harm when it resumes, and a connection cut at any statement
 * neither loses nor duplicates an event.
 *
 * <p>Method: the first instance connects through a proxy that holds or cuts one of its requests; a second instance connects
 * directly and takes over the relay; then the held request is released. The outbox is standalone or in the first of two
 * shards.
 *
 * <p>{@code -Deventsql.test.seconds=N} cuts for N seconds instead of 3, and in any case until 20 requests were cut.
 */
@Timeout(120)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RelayFencingIT {
    private static final int FAULTS_MIN = 20;
    private static final long RUN_SECONDS = Long.getLong("eventsql.test.seconds", 3);

    private final List<EventsDb> shards = new ArrayList<>();
    private final List<FaultProxy> proxies = new ArrayList<>();
    /** Two shards and a standalone outbox, directly and through the proxies. */
    private final List<HikariDataSource> direct = new ArrayList<>();

    private final List<HikariDataSource> proxied = new ArrayList<>();
    private String stream;

    @BeforeAll
    void start() throws SQLException {
        List<String> urls = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            EventsDb shard = SharedServerDatabase.create();
            shards.add(shard);
            urls.add(shard.jdbcUrl());
        }
        urls.add(((PGSimpleDataSource) TestCluster.newDatabase()).getUrl());
        for (String url : urls) {
            FaultProxy proxy = FaultProxy.to(url);
            proxies.add(proxy);
            direct.add(Pools.pool(TestCluster.server(), url));
            proxied.add(Pools.pool(TestCluster.server(), proxy.jdbcUrl()));
        }
        for (DataSource database : written()) {
            Sql.execute(database, OutboxLoad.TABLE);
        }
    }

    @AfterAll
    void stop() {
        direct.forEach(HikariDataSource::close);
        proxied.forEach(HikariDataSource::close);
        proxies.forEach(FaultProxy::close);
        shards.forEach(EventsDb::close);
    }

    @BeforeEach
    void createStream() throws SQLException {
        stream = TestStreams.newName();
        try (EventSql eventSql = open(direct)) {
            eventSql.createStream(TestStreams.of(stream).withPartitions(2).withSegmentSize(500));
        }
        for (DataSource database : written()) {
            Sql.execute(database, "TRUNCATE bill");
        }
    }

    @AfterEach
    void heal() {
        proxies.forEach(FaultProxy::heal);
    }

    /** The databases with an outbox that the tests write to, and the application's table. */
    private List<DataSource> written() {
        return List.of(direct.get(0), direct.get(2));
    }

    private static EventSql open(List<HikariDataSource> databases) {
        return open(databases, Duration.ofSeconds(30));
    }

    private static EventSql open(List<HikariDataSource> databases, Duration networkTimeout) {
        return EventSql.builder(databases.subList(0, 2))
                .outbox(databases.get(2))
                .settings(Settings.builder()
                        .outboxLease(Duration.ofSeconds(1))
                        .outboxPageEvents(20)
                        .networkTimeout(networkTimeout)
                        .build())
                .build();
    }

    /** Publishes events with keys of both shards, and one without a key. */
    private void publish(EventSql eventSql, DataSource database, int number) throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            for (String key : List.of("a", "b", "c", "d", "e", "f")) {
                String name = key + "/" + number;
                Sql.query(transaction, "INSERT INTO bill VALUES (?) RETURNING name", name);
                eventSql.outbox().publish(transaction, stream, Event.ofText(key, name));
            }
            Sql.query(transaction, "INSERT INTO bill VALUES (?) RETURNING name", "-/" + number);
            eventSql.outbox().publish(transaction, stream, Event.ofText("-/" + number));
            transaction.commit();
        }
    }

    private void verify(int transactions) throws SQLException {
        assertThat(OutboxLoad.verify(stream, List.copyOf(direct.subList(0, 2)), written()))
                .isEqualTo(transactions * 7);
    }

    /** Waits until an instance has relayed an event of this outbox, so that it holds the lease. */
    private void awaitLease(EventSql eventSql, DataSource database, int number) throws SQLException {
        publish(eventSql, database, number);
        OutboxLoad.awaitRelayed(eventSql.outbox());
    }

    /**
     * Frozen before taking events, before committing them, before sending to another shard, and before removing the sent
     * events.
     */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "relay_take_v1",
                FaultProxy.COMMIT,
                "append_transferred_v2",
                "DELETE FROM eventsql.outbox_transfer"
            })
    void relay_frozenPastItsLease_isFencedOut(String request) throws Exception {
        boolean atShard = request.startsWith("append");
        List<FaultProxy> affected = atShard ? proxies.subList(0, 2) : proxies.subList(2, 3);
        DataSource database = direct.get(2);
        try (EventSql first = open(proxied)) {
            awaitLease(first, database, 1);
            affected.forEach(proxy -> proxy.planRequests(request, number -> RequestFault.HOLD_REQUEST));
            publish(first, database, 2);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> affected.stream().anyMatch(proxy -> proxy.heldConnections() > 0));
            // From now on the first instance is cut off, as if its process were stopped.
            proxies.forEach(FaultProxy::blackhole);
            try (EventSql second = open(direct)) {
                OutboxLoad.awaitRelayed(second.outbox());
                publish(second, database, 3);
                OutboxLoad.awaitRelayed(second.outbox());
                verify(3);
                proxies.forEach(FaultProxy::heal);
                publish(second, database, 4);
                publish(first, database, 5);
                OutboxLoad.awaitRelayed(second.outbox());
                await().atMost(Duration.ofSeconds(120)).until(() -> activeStatements() == 0);
                OutboxLoad.awaitRelayed(second.outbox());
            }
        }
        verify(5);
    }

    /** Returns how many statements are being executed in the databases. */
    private long activeStatements() throws SQLException {
        long active = 0;
        for (DataSource database : direct) {
            active += Sql.queryLong(
                    database,
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
                            + " AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
        }
        return active;
    }

    /** Every kind of request of the relay is cut repeatedly while transactions are committed. */
    @Test
    void relay_connectionsCutAtEveryStatement_storesEveryCommittedEventOnceInKeyOrder() throws Exception {
        Random random = Seeds.random("RelayFencingIT.cut");
        List<RequestFault> cuts = List.of(
                RequestFault.CUT_BEFORE_REQUEST,
                RequestFault.CUT_WITHIN_REQUEST,
                RequestFault.CUT_AFTER_REQUEST,
                RequestFault.CUT_BEFORE_RESPONSE,
                RequestFault.CUT_WITHIN_RESPONSE);
        List<String> requests = List.of(
                "relay_take_v1",
                FaultProxy.COMMIT,
                "SELECT eventsql.append_v",
                "outbox_transfer",
                "append_transferred_v2",
                "register_outbox_v1",
                "relay_poll_v1",
                "TRUNCATE");
        AtomicInteger faults = new AtomicInteger();
        try (EventSql eventSql = open(proxied, Duration.ofSeconds(1))) {
            OutboxLoad ofShard = new OutboxLoad(direct.get(0), eventSql.outbox(), stream);
            OutboxLoad ofStandalone = new OutboxLoad(direct.get(2), eventSql.outbox(), stream);
            for (int writer = 0; writer < 2; writer++) {
                ofShard.start("s" + writer, random, 40);
                ofStandalone.start("o" + writer, random, 40);
            }
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(RUN_SECONDS);
            while (System.nanoTime() < end || faults.get() < FAULTS_MIN) {
                for (FaultProxy proxy : proxies) {
                    long seed = random.nextLong();
                    String request = requests.get(random.nextInt(requests.size()));
                    proxy.planRequests(request, number -> {
                        Random own = new Random(seed + number);
                        if (own.nextInt(3) > 0) {
                            return null;
                        }
                        faults.incrementAndGet();
                        return cuts.get(own.nextInt(cuts.size()));
                    });
                }
                TimeUnit.MILLISECONDS.sleep(random.nextInt(200));
            }
            proxies.forEach(FaultProxy::heal);
            ofShard.stop();
            ofStandalone.stop();
            OutboxLoad.awaitRelayed(eventSql.outbox());
        }
        int stored = OutboxLoad.verify(stream, List.copyOf(direct.subList(0, 2)), written());
        System.out.println(stored + " events, " + faults + " requests cut");
        assertThat(stored).isGreaterThan(50);
    }

    /** One request is cut, and no later event wakes the relay. */
    @Test
    void relay_connectionCutOnceWithoutLaterEvents_eventsArrive() throws Exception {
        List<String> requests = List.of(
                "relay_take_v1",
                FaultProxy.COMMIT,
                "append_transferred_v2",
                "register_outbox_v1",
                "relay_lock_v1",
                "DELETE FROM eventsql.outbox_transfer");
        // Not executed, executed or not, executed without an answer, and answered late.
        List<RequestFault> faults = List.of(
                RequestFault.CUT_BEFORE_REQUEST,
                RequestFault.CUT_AFTER_REQUEST,
                RequestFault.CUT_BEFORE_RESPONSE,
                RequestFault.HOLD_RESPONSE);
        DataSource database = direct.get(2);
        int number = 0;
        try (EventSql eventSql = open(proxied, Duration.ofSeconds(1))) {
            awaitLease(eventSql, database, ++number);
            for (String request : requests) {
                for (RequestFault fault : faults) {
                    proxies.forEach(proxy -> proxy.planRequests(request, n -> n == 1 ? fault : null));
                    publish(eventSql, database, ++number);
                    OutboxLoad.awaitRelayed(eventSql.outbox());
                }
            }
            proxies.forEach(FaultProxy::heal);
        }
        verify(number);
    }

    @Test
    void relay_anotherShardUnavailable_delaysOnlyItsEvents() throws Exception {
        DataSource database = direct.get(0);
        try (EventSql eventSql = open(List.of(direct.get(0), proxied.get(1), direct.get(2)), Duration.ofSeconds(1))) {
            awaitLease(eventSql, database, 1);
            String own = "SELECT count(*) FROM eventsql.events_" + stream;
            long ownKeys = Sql.queryLong(database, own);
            assertThat(ownKeys).isBetween(1L, 6L);
            proxies.get(1).blackhole();
            for (int number = 2; number < 20; number++) {
                publish(eventSql, database, number);
            }
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(
                            () -> assertThat(Sql.queryLong(database, own)).isEqualTo(ownKeys * 19));
            assertThat(Sql.queryLong(database, "SELECT count(*) FROM eventsql.outbox_transfer"))
                    .isEqualTo((7 - ownKeys) * 18);
            proxies.get(1).heal();
            OutboxLoad.awaitRelayed(eventSql.outbox());
        }
        verify(19);
    }
}
