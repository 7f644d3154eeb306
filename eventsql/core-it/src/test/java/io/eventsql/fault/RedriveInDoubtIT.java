package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a redrive whose last commit was stored, although its answer was lost, leaves no key parked: its later events
 * are handled, in order. If the handler has written in the same transaction, that is no failed attempt. Method: a proxy
 * cuts the connection between that commit and its answer, or holds the commit.
 */
@Timeout(120)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RedriveInDoubtIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private ProxiedDatabase database;
    private HikariDataSource direct;
    private EventSql control;
    private String stream;

    @BeforeAll
    void open() throws SQLException {
        database = ProxiedDatabase.on(TestCluster.server());
        direct = TestCluster.pool(database.direct());
        control = EventSql.builder(direct).build();
    }

    @AfterAll
    void close() {
        control.close();
        direct.close();
        database.close();
    }

    @BeforeEach
    void createStream() {
        stream = TestStreams.newName();
        control.createStream(TestStreams.of(stream).withPartitions(1));
    }

    @AfterEach
    void heal() {
        database.proxy().heal();
    }

    private void awaitDrained() {
        await().atMost(DEADLINE)
                .until(() -> control.consumer(stream, "c").state().stream().allMatch(state -> state.lag() == 0));
    }

    private ConsumerSpec parking() {
        return ConsumerSpec.of(stream, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void redrive_answerToFreeingKeysIsLost_laterEventsAreHandled(int keyConcurrency) throws Exception {
        AtomicBoolean failing = new AtomicBoolean(true);
        Handled handled = new Handled();
        try (EventSql eventSql = EventSql.builder(database.pool()).build()) {
            eventSql.subscribe(parking().withKeyConcurrency(keyConcurrency), event -> {
                if (failing.get()) {
                    throw new IllegalStateException("cannot handle it");
                }
                handled.add(event);
            });
            control.publisher().publish(stream, Event.ofText("a", "a1"));
            control.publisher().publish(stream, Event.ofText("a", "a2"));
            awaitDrained();
            failing.set(false);

            FaultProxy proxy = database.proxy();
            proxy.planRequests(
                    "DELETE FROM eventsql.parked_key", number -> number == 1 ? RequestFault.HOLD_RESPONSE : null);
            assertThat(control.consumer(stream, "c").redrive()).isEqualTo(2);
            await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
            proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.CUT_BEFORE_RESPONSE : null);
            proxy.releaseHeld();
            await().atMost(DEADLINE).until(() -> proxy.requests() > 1); // another attempt

            control.publisher().publish(stream, Event.ofText("a", "a3"));
            awaitDrained();
            assertThat(control.consumer(stream, "c").parkedEvents(10)).isEmpty();
            assertThat(handled.texts()).containsExactly("a1", "a2", "a3");
            assertThat(control.consumer(stream, "c").state())
                    .extracting(PartitionState::parkedKeys)
                    .containsExactly(0);
        }
    }

    /** A consumer that parks an event and redrives it in the handler's transaction, whose commit meets a fault. */
    private final class TransactionalRedrive implements ConsumerListener, AutoCloseable {
        private final String effectTable = "public.effect_" + stream;
        private final EventSql eventSql;
        private final AtomicBoolean failing = new AtomicBoolean(true);
        private final AtomicInteger redriven = new AtomicInteger();
        private final List<String> failures = new CopyOnWriteArrayList<>();

        TransactionalRedrive(RequestFault ofCommit) throws SQLException {
            eventSql = EventSql.builder(database.pool())
                    .settings(Settings.builder()
                            .networkTimeout(Duration.ofSeconds(1))
                            .lease(Duration.ofMinutes(1))
                            .heartbeat(Duration.ofSeconds(20))
                            .build())
                    .listener(this)
                    .build();
            Sql.execute(direct, "CREATE TABLE " + effectTable + " (value text PRIMARY KEY)");
            eventSql.subscribeTransactional(parking(), (event, connection) -> {
                if (failing.get()) {
                    throw new IllegalStateException("cannot handle it");
                }
                if (redriven.incrementAndGet() == 1) {
                    database.proxy().planRequests(FaultProxy.COMMIT, number -> ofCommit);
                }
                insertEffect(connection, event.text());
            });
        }

        private void insertEffect(Connection connection, String value) throws SQLException {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + effectTable + " VALUES (?)")) {
                insert.setString(1, value);
                insert.executeUpdate();
            }
        }

        @Override
        public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
            failures.add(event.text());
        }

        void parkAndRedrive() {
            control.publisher().publish(stream, Event.ofText("a", "a1"));
            awaitDrained();
            failing.set(false);
            assertThat(control.consumer(stream, "c").redrive()).isEqualTo(1);
        }

        List<String> effects() throws SQLException {
            return Sql.query(direct, "SELECT value FROM " + effectTable + " ORDER BY 1");
        }

        /** Asserts, when the key is free, that each event was handled once, and only the first attempt has failed. */
        void assertRedrivenOnce() throws SQLException {
            await().atMost(DEADLINE)
                    .until(() ->
                            control.consumer(stream, "c").state().getFirst().parkedKeys() == 0);
            control.publisher().publish(stream, Event.ofText("a", "a2"));
            awaitDrained();
            assertThat(effects()).containsExactly("a1", "a2");
            assertThat(control.consumer(stream, "c").parkedEvents(10)).isEmpty();
            assertThat(failures).containsExactly("a1");
            assertThat(redriven).as("calls of the handler that did not fail").hasValue(2);
        }

        @Override
        public void close() {
            database.proxy().heal();
            eventSql.close();
        }
    }

    /** Shown before the fix: the handler was called again, and failed because of its own effect. */
    @Test
    void redriveInTransaction_commitStoredAndAnswerLost_isNoFailedAttempt() throws Exception {
        try (TransactionalRedrive redrive = new TransactionalRedrive(RequestFault.CUT_BEFORE_RESPONSE)) {
            redrive.parkAndRedrive();
            await().atMost(DEADLINE).until(() -> !redrive.effects().isEmpty());
            database.proxy().heal();
            redrive.assertRedrivenOnce();
        }
    }

    /** Shown before the fix: the handler was called again, and waited for its own effect. */
    @Test
    void redriveInTransaction_commitHangsAndIsStoredLater_isNoFailedAttempt() throws Exception {
        try (TransactionalRedrive redrive = new TransactionalRedrive(RequestFault.HOLD_REQUEST)) {
            redrive.parkAndRedrive();
            await().atMost(DEADLINE)
                    .until(() -> Sql.queryLong(
                                    direct,
                                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                            + " AND wait_event_type = 'Lock'"
                                            + " AND query LIKE 'DELETE FROM eventsql.parked_event%'")
                            > 0);
            assertThat(redrive.effects()).isEmpty();
            database.proxy().heal();
            redrive.assertRedrivenOnce();
        }
    }
}
