package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a redrive whose last commit was stored, although its answer was lost, leaves no key parked: its later events are
 * handled, in order. Method: a proxy cuts the connection between that commit and its answer.
 */
@Timeout(120)
class RedriveInDoubtIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static EmbeddedEventsDb eventsDb;

    @BeforeAll
    static void startDatabase() {
        eventsDb = EmbeddedEventsDb.builder().start();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    private static void awaitDrained(EventSql eventSql) {
        await().atMost(DEADLINE)
                .until(() -> eventSql.consumer("orders", "c").state().stream().allMatch(state -> state.lag() == 0));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void redrive_answerToFreeingKeysIsLost_laterEventsAreHandled(int keyConcurrency) throws Exception {
        AtomicBoolean failing = new AtomicBoolean(true);
        Handled handled = new Handled();
        try (ProxiedDatabase database = ProxiedDatabase.on(eventsDb);
                EventSql control = EventSql.builder(database.direct()).build();
                EventSql eventSql = EventSql.builder(database.pool()).build()) {
            control.createStream(TestStreams.of("orders").withPartitions(1));
            eventSql.subscribe(
                    ConsumerSpec.of("orders", "c")
                            .withKeyConcurrency(keyConcurrency)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                            .withFailurePolicy(FailurePolicy.PARK_KEY),
                    event -> {
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
}
