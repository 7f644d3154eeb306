package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a redrive whose last commit was stored, although its answer was lost, leaves no key parked: its later events
 * are handled, in order. If the handler has written in the same transaction, that is no failed attempt. Method: a proxy
 * cuts the connection between that commit and its answer, or holds the commit.
 */
@Timeout(120)
class RedriveInDoubtIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static void awaitDrained(EventSql eventSql) {
        await().atMost(DEADLINE)
                .until(() -> eventSql.consumer("orders", "c").state().stream().allMatch(state -> state.lag() == 0));
    }

    private static ConsumerSpec parking() {
        return ConsumerSpec.of("orders", "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void redrive_answerToFreeingKeysIsLost_laterEventsAreHandled(int keyConcurrency) throws Exception {
        AtomicBoolean failing = new AtomicBoolean(true);
        Handled handled = new Handled();
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server());
                EventSql control = EventSql.builder(database.direct()).build();
                EventSql eventSql = EventSql.builder(database.pool()).build()) {
            control.createStream(TestStreams.of("orders").withPartitions(1));
            eventSql.subscribe(parking().withKeyConcurrency(keyConcurrency), event -> {
                if (failing.get()) {
                    throw new IllegalStateException("cannot handle it");
                }
                handled.add(event);
            });
            control.publisher().publish("orders", Event.ofText("a", "a1"));
            control.publisher().publish("orders", Event.ofText("a", "a2"));
            awaitDrained(control);
            failing.set(false);

            FaultProxy proxy = database.proxy();
            proxy.planRequests(
                    "DELETE FROM eventsql.parked_key", number -> number == 1 ? RequestFault.HOLD_RESPONSE : null);
            assertThat(control.consumer("orders", "c").redrive()).isEqualTo(2);
            await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
            proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.CUT_BEFORE_RESPONSE : null);
            proxy.releaseHeld();
            await().atMost(DEADLINE).until(() -> proxy.requests() > 1); // another attempt

            control.publisher().publish("orders", Event.ofText("a", "a3"));
            awaitDrained(control);
            assertThat(control.consumer("orders", "c").parkedEvents(10)).isEmpty();
            assertThat(handled.texts()).containsExactly("a1", "a2", "a3");
            assertThat(control.consumer("orders", "c").state())
                    .extracting(PartitionState::parkedKeys)
                    .containsExactly(0);
        }
    }

    /** A consumer that parks an event and redrives it in the handler's transaction, whose commit meets a fault. */
    private static final class TransactionalRedrive implements ConsumerListener, AutoCloseable {
        private final ProxiedDatabase database;
        private final EventSql control;
        private final EventSql eventSql;
        private final AtomicBoolean failing = new AtomicBoolean(true);
        private final AtomicInteger redriven = new AtomicInteger();
        private final List<String> failures = new CopyOnWriteArrayList<>();

        TransactionalRedrive(RequestFault ofCommit) throws SQLException {
            database = ProxiedDatabase.on(TestCluster.server());
            control = EventSql.builder(database.direct()).build();
            eventSql = EventSql.builder(database.pool())
                    .settings(Settings.builder()
                            .networkTimeout(Duration.ofSeconds(1))
                            .lease(Duration.ofMinutes(1))
                            .heartbeat(Duration.ofSeconds(20))
                            .build())
                    .listener(this)
                    .build();
            control.createStream(TestStreams.of("orders").withPartitions(1));
            Sql.execute(database.direct(), "CREATE TABLE public.effect (value text PRIMARY KEY)");
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

        private static void insertEffect(Connection connection, String value) throws SQLException {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO public.effect VALUES (?)")) {
                insert.setString(1, value);
                insert.executeUpdate();
            }
        }

        @Override
        public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
            failures.add(event.text());
        }

        void parkAndRedrive() {
            control.publisher().publish("orders", Event.ofText("a", "a1"));
            awaitDrained(control);
            failing.set(false);
            assertThat(control.consumer("orders", "c").redrive()).isEqualTo(1);
        }

        List<String> effects() throws SQLException {
            return Sql.query(database.direct(), "SELECT value FROM public.effect ORDER BY 1");
        }

        /** Asserts, when the key is free, that each event was handled once, and only the first attempt has failed. */
        void assertRedrivenOnce() throws SQLException {
            await().atMost(DEADLINE)
                    .until(() ->
                            control.consumer("orders", "c").state().getFirst().parkedKeys() == 0);
            control.publisher().publish("orders", Event.ofText("a", "a2"));
            awaitDrained(control);
            assertThat(effects()).containsExactly("a1", "a2");
            assertThat(control.consumer("orders", "c").parkedEvents(10)).isEmpty();
            assertThat(failures).containsExactly("a1");
            assertThat(redriven).as("calls of the handler that did not fail").hasValue(2);
        }

        @Override
        public void close() {
            database.proxy().heal();
            eventSql.close();
            control.close();
            database.close();
        }
    }

    /** Shown before the fix: the handler was called again, and failed because of its own effect. */
    @Test
    void redriveInTransaction_commitStoredAndAnswerLost_isNoFailedAttempt() throws Exception {
        try (TransactionalRedrive redrive = new TransactionalRedrive(RequestFault.CUT_BEFORE_RESPONSE)) {
            redrive.parkAndRedrive();
            await().atMost(DEADLINE).until(() -> !redrive.effects().isEmpty());
            redrive.database.proxy().heal();
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
                                    redrive.database.direct(),
                                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                            + " AND wait_event_type = 'Lock'"
                                            + " AND query LIKE 'DELETE FROM eventsql.parked_event%'")
                            > 0);
            assertThat(redrive.effects()).isEmpty();
            redrive.database.proxy().heal();
            redrive.assertRedrivenOnce();
        }
    }
}
