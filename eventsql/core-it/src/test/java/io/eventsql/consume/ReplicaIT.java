package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ReadFrom;
import io.eventsql.ReplicaStatus;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.StandbyMode;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.server.ReplicatedServer;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: consumers and {@code read} use a replica where they are allowed to, wait for one that is behind, and read from the
 * primary when it is too far behind or unavailable. Method: a real standby whose replay is paused, or which is stopped.
 */
@Timeout(180)
class ReplicaIT {
    private static final Duration NO_LIMIT = Duration.ofHours(1);
    private static final Duration LIMIT = Duration.ofMillis(300);

    private static ReplicatedServer server;
    private static DataSource primary;
    private static DataSource standby;

    private final String stream = TestStreams.newName();
    private final Handled handled = new Handled();
    private final List<EventSql> opened = new ArrayList<>();

    @BeforeAll
    static void start() {
        server = new ReplicatedServer(StandbyMode.ASYNCHRONOUS);
        primary = server.pool();
        standby = server.standbyPool(0);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @AfterEach
    void closeAll() throws SQLException {
        opened.reversed().forEach(EventSql::close);
        server.standby(0).restart();
        server.resumeReplay(0);
    }

    private EventSql open(DataSource replica, Duration maxReplicaLag) {
        EventSql eventSql = EventSql.builder(primary)
                .replica(primary, replica)
                .settings(Settings.builder().maxReplicaLag(maxReplicaLag).build())
                .build();
        opened.add(eventSql);
        eventSql.createStream(TestStreams.of(stream).withPartitions(2).withSegmentSize(100));
        return eventSql;
    }

    private EventSql openUsable(Duration maxReplicaLag) {
        EventSql eventSql = open(standby, maxReplicaLag);
        awaitUsed(eventSql);
        return eventSql;
    }

    private static ReplicaStatus status(EventSql eventSql) {
        return eventSql.replicas().getFirst();
    }

    private static void awaitUsed(EventSql eventSql) {
        await().until(() -> status(eventSql).isUsed());
    }

    private ConsumerSpec spec() {
        return ConsumerSpec.of(stream, "c").withReadFrom(ReadFrom.REPLICA);
    }

    private void publish(EventSql eventSql, String prefix, int count) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key" + i, prefix + i))
                                .toList());
    }

    private void awaitCommitted(EventSql eventSql) {
        await().until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.lag() == 0));
    }

    /** The lag grows past this while the replay is paused: what the replica lacks is older than that. */
    private static void awaitLag(EventSql eventSql, Duration lag) {
        await().until(() -> {
            Duration now = status(eventSql).lag();
            return now != null && now.compareTo(lag) > 0;
        });
    }

    @Test
    void consumer_replicaIsBehind_waitsForItAndThenHandlesEverythingOnce() throws SQLException {
        EventSql eventSql = openUsable(NO_LIMIT);
        eventSql.subscribe(spec(), handled::add);
        publish(eventSql, "replayed", 250);
        handled.awaitSize(250);
        awaitCommitted(eventSql);

        server.pauseReplay(0);
        publish(eventSql, "received", 50);
        awaitLag(eventSql, LIMIT);
        assertThat(handled.size())
                .as("events handled while the replica lacks them")
                .isEqualTo(250);
        assertThat(eventSql.positions(stream, "c")).allMatch(p -> p.lag() > 0);
        assertThat(status(eventSql).isUsed()).isTrue();

        server.resumeReplay(0);
        handled.awaitSize(300).assertOnceAndInOrder();
        awaitCommitted(eventSql);
    }

    @Test
    void consumer_replicaIsTooFarBehind_readsFromThePrimaryAndReturns() throws SQLException {
        try (CapturedLog log = CapturedLog.of("shard")) {
            EventSql eventSql = openUsable(LIMIT);
            eventSql.subscribe(spec(), handled::add);
            publish(eventSql, "replayed", 50);
            handled.awaitSize(50);

            server.pauseReplay(0);
            publish(eventSql, "received", 50);
            handled.awaitSize(100).assertOnceAndInOrder();
            assertThat(status(eventSql).isUsed()).isFalse();
            await().until(() -> !log.lines("reading from the primary").isEmpty());

            server.resumeReplay(0);
            awaitUsed(eventSql);
            publish(eventSql, "again", 50);
            handled.awaitSize(150).assertOnceAndInOrder();
        }
    }

    @Test
    void consumer_replicaStopsAndStarts_continues() {
        EventSql eventSql = openUsable(LIMIT);
        eventSql.subscribe(spec(), handled::add);
        publish(eventSql, "before", 50);
        handled.awaitSize(50);

        server.standby(0).stop();
        publish(eventSql, "stopped", 50);
        handled.awaitSize(100);
        awaitCommitted(eventSql);
        assertThat(status(eventSql).isUsed()).isFalse();
        assertThat(status(eventSql).problem()).isNotBlank();

        server.standby(0).restart();
        awaitUsed(eventSql);
        assertThat(status(eventSql).problem()).isNull();
        publish(eventSql, "after", 50);
        handled.awaitSize(150).assertOnceAndInOrder();
    }

    @Test
    void consumerOfPrimary_replicaIsStopped_isNotDelayedByIt() {
        EventSql eventSql = openUsable(NO_LIMIT);
        eventSql.subscribe(spec().withReadFrom(ReadFrom.PRIMARY), handled::add);
        server.standby(0).stop();
        publish(eventSql, "stopped", 50);
        handled.awaitSize(50).assertOnceAndInOrder();
    }

    @Test
    void transactionalHandler_onReplica_effectsAreCommittedOnceWithTheOffsetOnThePrimary() throws SQLException {
        Sql.execute(primary, "CREATE TABLE effect (text text)"); // no primary key, so that a duplicate is visible
        EventSql eventSql = openUsable(LIMIT);
        AtomicInteger failures = new AtomicInteger();
        eventSql.subscribeTransactional(spec().withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(1)), (e, c) -> {
            try (PreparedStatement insert = c.prepareStatement("INSERT INTO effect VALUES (?)")) {
                insert.setString(1, e.text());
                insert.execute();
            }
            if (failures.getAndIncrement() == 20) {
                throw new IllegalStateException("once");
            }
        });
        publish(eventSql, "replayed", 50);
        server.standby(0).stop();
        publish(eventSql, "stopped", 50);
        awaitCommitted(eventSql);
        assertThat(Sql.query(primary, "SELECT text FROM effect"))
                .containsExactlyInAnyOrderElementsOf(IntStream.range(0, 50)
                        .boxed()
                        .flatMap(i -> List.of("replayed" + i, "stopped" + i).stream())
                        .toList());
    }

    @Test
    void read_replicaLacksEvents_readsThemFromThePrimary() throws SQLException {
        EventSql eventSql = openUsable(NO_LIMIT);
        EventPosition first = eventSql.publisher().publish(stream, Event.ofText("key", "replayed"));
        server.awaitReplayed(0);
        server.pauseReplay(0);
        EventPosition second = eventSql.publisher().publish(stream, Event.ofText("key", "received"));

        assertThat(eventSql.read(first, 10, ReadFrom.REPLICA))
                .extracting(StoredEvent::text)
                .as("what the replica has")
                .containsExactly("replayed");
        assertThat(eventSql.read(first, 10, ReadFrom.PRIMARY)).hasSize(2);
        assertThat(eventSql.read(second, 10, ReadFrom.REPLICA))
                .extracting(StoredEvent::text)
                .containsExactly("received");
        server.standby(0).stop();
        assertThat(eventSql.read(first, 10, ReadFrom.REPLICA)).hasSize(2);
    }

    /** A standby shows a commit that waits for synchronous replicas, which the primary does not show yet. */
    @Test
    void consumer_eventIsVisibleOnTheReplicaAlone_isNotHandledBeforeItIsAcknowledged() throws Exception {
        DataSource local = server.localPool();
        List<List<String>> batches = new CopyOnWriteArrayList<>();
        try (EventSql consuming =
                EventSql.builder(local).replica(local, standby).build()) {
            consuming.createStream(TestStreams.of(stream).withPartitions(1).withSegmentSize(100));
            awaitUsed(consuming);
            EventSql publishing = EventSql.builder(primary).build();
            opened.add(publishing);
            publish(publishing, "visible", 10);
            CompletableFuture<EventPosition> waiting;
            try {
                Sql.execute(
                        server.primary().adminDataSource(),
                        "ALTER SYSTEM SET synchronous_standby_names = 'missing'",
                        "SELECT pg_reload_conf()");
                await().until(() ->
                        Sql.query(local, "SHOW synchronous_standby_names").contains("missing"));
                waiting = publishing.publisher().publishAsync(stream, Event.ofText("key", "waiting"));
                await().until(() -> Sql.queryLong(standby, "SELECT count(*) FROM eventsql.events_" + stream) == 11);

                consuming.subscribeBatch(
                        spec(),
                        events -> batches.add(
                                events.stream().map(StoredEvent::text).toList()));
                await().until(() -> !batches.isEmpty());
                assertThat(batches.getFirst()).hasSize(10).allMatch(text -> text.startsWith("visible"));
                assertThat(consuming.read(new EventPosition(stream, 0, 0, 0), 100, ReadFrom.REPLICA))
                        .hasSize(10);
                assertThat(waiting).isNotDone();
            } finally {
                Sql.execute(
                        server.primary().adminDataSource(),
                        "ALTER SYSTEM RESET synchronous_standby_names",
                        "SELECT pg_reload_conf()");
            }
            waiting.get(120, TimeUnit.SECONDS);
            await().until(() -> batches.size() == 2);
            assertThat(batches.getLast()).containsExactly("waiting");
        }
    }

    @Test
    void replica_isAnotherDatabase_isNeverRead() {
        EventSql eventSql = open(TestCluster.newDatabase(), LIMIT);
        eventSql.subscribe(spec(), handled::add);
        publish(eventSql, "event", 50);
        handled.awaitSize(50).assertOnceAndInOrder();
        assertThat(status(eventSql).isUsed()).isFalse();
        assertThat(status(eventSql).lag()).isNull();
    }

    @Test
    void consumer_readsConflictWithReplay_areRepeatedAtTheSameOffset() {
        Conflicting replica = new Conflicting(standby);
        EventSql eventSql = open(replica, NO_LIMIT);
        awaitUsed(eventSql);
        try (CapturedLog log = CapturedLog.of("consume")) {
            eventSql.subscribe(spec(), handled::add);
            for (int i = 0; i < 10; i++) {
                publish(eventSql, i + "-", 10);
                handled.awaitSize((i + 1) * 10);
            }
            handled.assertOnceAndInOrder();
            assertThat(replica.conflicts.get()).isPositive();
            assertThat(log.lines("could not be read")).as("single conflicts").isEmpty();
        }
    }

    /**
     * A vacuum removes row versions that a read in progress might see: the standby, which does not tell the primary what it reads,
     * cancels the read at once. The rows were replaced by equal ones, so that no event is missing.
     */
    @Test
    void consumer_vacuumIsReplayedDuringARead_isCanceledAndReadsTheSameOffsetsAgain() throws Exception {
        DataSource replica = server.standby(0).adminDataSource();
        Sql.execute(
                replica,
                "ALTER SYSTEM SET hot_standby_feedback = off",
                "ALTER SYSTEM SET max_standby_streaming_delay = 0",
                "SELECT pg_reload_conf()");
        try (CapturedLog log = CapturedLog.of("consume")) {
            SlowRead slow = new SlowRead(standby);
            EventSql eventSql = open(slow, NO_LIMIT);
            awaitUsed(eventSql);
            long before = conflicts();
            eventSql.subscribe(spec(), handled::add);
            publish(eventSql, "before", 50);
            handled.awaitSize(50);
            awaitCommitted(eventSql);

            slow.next.set(true);
            publish(eventSql, "read", 50);
            await().until(slow.isReading::get);
            try (Connection connection = primary.getConnection()) {
                String table = TestStreams.table(connection, stream);
                Sql.query(
                        connection,
                        "WITH u AS (UPDATE " + table
                                + " SET published_at = published_at RETURNING 1) SELECT count(*) FROM u");
                Sql.execute(primary, "VACUUM " + table);
            }
            await().until(() -> slow.failure.get() != null);
            SQLException canceled = Objects.requireNonNull(slow.failure.get());
            assertThat(canceled.getMessage()).contains("conflict with recovery");
            assertThat(canceled.getSQLState()).isEqualTo("40001");

            handled.awaitSize(100).assertOnceAndInOrder();
            await().until(() -> conflicts() > before);
            assertThat(status(eventSql).isUsed()).isTrue();
            assertThat(log.lines("could not be read")).as("a single conflict").isEmpty();
        } finally {
            Sql.execute(
                    replica,
                    "ALTER SYSTEM RESET hot_standby_feedback",
                    "ALTER SYSTEM RESET max_standby_streaming_delay",
                    "SELECT pg_reload_conf()");
        }
    }

    /** Returns how many statements the standby has canceled because of old row versions. */
    private static long conflicts() throws SQLException {
        return Sql.queryLong(standby, "SELECT sum(confl_snapshot) FROM pg_stat_database_conflicts");
    }

    /** Lets one read last until the server cancels it. */
    private static final class SlowRead extends DelegatingDataSource {
        private final AtomicBoolean next = new AtomicBoolean();
        private final AtomicBoolean isReading = new AtomicBoolean();
        private final AtomicReference<@Nullable SQLException> failure = new AtomicReference<>();

        SlowRead(DataSource delegate) {
            super(delegate);
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            return (Connection) Proxy.newProxyInstance(
                    SlowRead.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                        if (method.getName().equals("commit") && next.compareAndSet(true, false)) {
                            isReading.set(true);
                            try (Statement statement = connection.createStatement()) {
                                statement.execute("SELECT pg_sleep(60)");
                            } catch (SQLException e) {
                                failure.set(e);
                                throw e;
                            }
                        }
                        try {
                            return method.invoke(connection, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        }
    }

    /** Ends every third transaction as the server does when a read conflicts with the replay. */
    private static final class Conflicting extends DelegatingDataSource {
        private final AtomicInteger commits = new AtomicInteger();
        private final AtomicInteger conflicts = new AtomicInteger();

        Conflicting(DataSource delegate) {
            super(delegate);
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            return (Connection) Proxy.newProxyInstance(
                    Conflicting.class.getClassLoader(),
                    new Class<?>[] {Connection.class},
                    (proxy, method, arguments) -> {
                        if (method.getName().equals("commit") && commits.incrementAndGet() % 3 == 0) {
                            conflicts.incrementAndGet();
                            throw new SQLException("canceling statement due to conflict with recovery", "40001");
                        }
                        try {
                            return method.invoke(connection, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        }
    }
}
