package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: when a database gets another incarnation under running members and publishers, but has lost nothing, nothing is
 * reported as lost, and nothing is handled again that was handled before.
 *
 * <p>Method: the server is restarted, all tables are restored by COPY to the state that they have, or a restore is declared.
 */
@Timeout(120)
class HistoryKeptIT extends HistoryFixture {
    private static EmbeddedEventsDb eventsDb;

    @BeforeAll
    static void startServer() {
        eventsDb = EmbeddedEventsDb.builder().durable(false).start();
        pool = Pools.pool(eventsDb);
    }

    @AfterAll
    static void stopServer() {
        pool.close();
        eventsDb.close();
    }

    @Test
    void restart_nothingWasLost_isNotReported() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "before", 3);
        awaitCommitted(stream, 3);
        String before = Sql.query(pool, "SELECT eventsql.incarnation_v1()").getFirst();
        eventsDb.restart();
        publish(eventSql, stream, "after", 3);
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 6);
        assertThat(Sql.query(pool, "SELECT eventsql.incarnation_v1()").getFirst())
                .isNotEqualTo(before);
        assertThat(lost.consumed()).isEmpty();
        assertThat(lost.published()).isEmpty();
    }

    @Test
    void restore_nothingWasLost_isNotReported() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup.take(pool).restore(pool);

        publish(eventSql, stream, "new", 2);
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 5);
        handled.assertOnceAndInOrder();
        assertThat(lost.consumed()).isEmpty();
        assertThat(lost.published()).isEmpty();
    }

    @Test
    void declareRestored_runningInstance_comparesWhatItRemembers() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "before", 3);
        awaitCommitted(stream, 3);
        Sql.execute(pool, "SELECT eventsql.declare_restored('test')");
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED));
        publish(eventSql, stream, "after", 3);
        awaitAllHandled(stream, handled);
        assertThat(lost.consumed()).isEmpty();
        assertThat(lost.published()).isEmpty();
    }

    /** Shown before the fix: everything below the committed offset was reported as lost. */
    @Test
    void restart_consumerWasMovedBack_isNotReported() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        try (EventSql calm = openWithRareHeartbeats()) {
            calm.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
            publish(eventSql, stream, "before", 5);
            awaitCommitted(stream, 5);
            // No signal tells the member of it before the restart does.
            Sql.query(pool, "SELECT eventsql.seek_v1(NULL, " + consumerId(stream) + ", 0, 1, NULL)");
            eventsDb.restart();
            publish(eventSql, stream, "after", 1);
            handled.awaitSize(10);
            awaitCommitted(stream, 6);
        }
        assertThat(handled.texts().subList(5, 10))
                .containsExactly("before1", "before2", "before3", "before4", "after0");
        assertThat(lost.consumed()).isEmpty();
        assertThat(lost.published()).isEmpty();
    }

    /** Shown before the fix: the consumer was created again, and everything that it had handled was reported as lost. */
    @ParameterizedTest(name = "altered before: {0}")
    @ValueSource(booleans = {false, true})
    void restart_consumerWasDeleted_isNotCreatedAgain(boolean isAltered) throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        try (EventSql calm = openWithRareHeartbeats()) {
            calm.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
            publish(eventSql, stream, "first", 1);
            awaitCommitted(stream, 1);
            if (isAltered) {
                alter(stream);
            }
            publish(eventSql, stream, "more", 3);
            awaitCommitted(stream, 4);
            String id = consumerId(stream);
            Sql.execute(
                    pool,
                    "DELETE FROM eventsql.consumer WHERE consumer_id = " + id,
                    "DELETE FROM eventsql.consumer_offset WHERE consumer_id = " + id);
            eventsDb.restart();
            publish(eventSql, stream, "after", 1);
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(lost.revoked()).containsExactly(Reason.LOST));
        }
        assertThat(Sql.query(pool, CONSUMER_ID, stream)).isEmpty();
        assertThat(handled.size()).isEqualTo(4);
        assertThat(lost.consumed()).isEmpty();
    }

    /** Shown before the fix: its acknowledged events were reported as lost. */
    @Test
    void restart_streamWasDeleted_isNotReported() {
        String stream = newStream();
        String other = newStream();
        publish(eventSql, stream, "deleted", 3);
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
        eventsDb.restart();
        publish(eventSql, other, "after", 1);
        eventSql.close(); // its listeners have been called
        assertThat(lost.published()).isEmpty();
    }

    /** Shown before the fix: the events that were handled but not committed were handled twice. */
    @ParameterizedTest(name = "altered before: {0}")
    @ValueSource(booleans = {false, true})
    void restart_handledEventsAreNotCommitted_areCommittedAndNotRepeated(boolean isAltered) throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(rarelyCommitting(stream), handled::add);
        if (isAltered) {
            alter(stream);
        }
        publish(eventSql, stream, "before", 5);
        handled.awaitSize(5);
        eventsDb.restart();
        publish(eventSql, stream, "after", 3);
        awaitAllHandled(stream, handled);
        handled.assertOnceAndInOrder();
        assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED);
        assertThat(lost.consumed()).isEmpty();
    }

    /** Shown before the fix: the event that was being handled was handled again. */
    @Test
    void restart_handlerIsRunning_itsEventIsNotRepeated() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        CountDownLatch began = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        eventSql.subscribe(rarelyCommitting(stream), event -> {
            handled.add(event);
            began.countDown();
            released.await();
        });
        publish(eventSql, stream, "before", 3);
        began.await();
        eventsDb.restart();
        publish(eventSql, stream, "after", 1); // the instance has noticed the restart
        released.countDown();
        publish(eventSql, stream, "last", 3);
        awaitAllHandled(stream, handled);
        handled.assertOnceAndInOrder();
    }
}
