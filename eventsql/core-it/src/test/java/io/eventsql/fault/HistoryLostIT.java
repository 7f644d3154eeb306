package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.UnknownStreamException;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.LostHistory;
import io.eventsql.fixture.LostHistory.Range;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: when a database is restored to an earlier state under running members and publishers, nothing stalls, nothing is
 * skipped silently, nothing goes into another stream, and what was lost is reported once.
 *
 * <p>Method: all tables are restored by COPY, as {@code pg_restore --clean} does, while an instance runs. Without the
 * table {@code incarnation} the restore looks like the reset of a virtual machine to a snapshot: nothing identifies the
 * new history, and only what publishers and members remember shows the loss.
 */
@Timeout(120)
class HistoryLostIT {
    /** No lease expires while a restore holds its locks: what was not committed of that partition would be no loss. */
    private static final Settings SETTINGS = Settings.builder()
            .publishTimeout(Duration.ofSeconds(60))
            .networkTimeout(Duration.ofSeconds(30))
            .lease(Duration.ofSeconds(60))
            .heartbeat(Duration.ofMillis(500))
            .build();

    private static final String INCARNATION = "eventsql.incarnation";
    private static final String CONSUMER_ID = """
            SELECT c.consumer_id FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id)
            WHERE s.name = ? AND c.name = 'c'""";
    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static EmbeddedEventsDb eventsDb;
    private static HikariDataSource pool;

    private final LostHistory lost = new LostHistory();
    private EventSql eventSql;

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

    @BeforeEach
    void open() {
        eventSql = EventSql.builder(pool)
                .settings(SETTINGS)
                .listener(lost)
                .publishListener(lost)
                .build();
    }

    @AfterEach
    void close() {
        eventSql.close();
    }

    private String newStream() {
        String name = "restored" + STREAMS.incrementAndGet();
        eventSql.createStream(TestStreams.of(name).withPartitions(1).withSegmentSize(1_000));
        return name;
    }

    /** Changes what a member need not know: it remembers the stream as it was when it began. */
    private void alter(String stream) {
        eventSql.alterStream(TestStreams.of(stream)
                .withPartitions(1)
                .withSegmentSize(1_000)
                .withRetention(Retention.FOREVER.withMaxEvents(1_000_000)));
    }

    private static List<EventPosition> publish(EventSql publisher, String stream, String prefix, int count) {
        return publisher
                .publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key", prefix + i))
                                .toList());
    }

    private void awaitCommitted(String stream, long offset) {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.nextOffset() == offset));
    }

    /** Listeners of publishers are called by a thread of their own. */
    private void assertPublishedLost(Range... ranges) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.published()).containsExactlyInAnyOrder(ranges));
    }

    private static Set<String> stored(String stream) throws SQLException {
        return new HashSet<>(Sql.query(pool, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream));
    }

    private static void awaitAllHandled(String stream, Handled handled) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(handled.texts()).containsAll(stored(stream)));
    }

    /** Shown before the fix: the fetching thread tried to stop the partition again and again, without a log line. */
    @Test
    void restore_headBelowCommittedOffset_isReportedAndTheMemberContinues() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 8);

        backup.restore(pool);
        assertThat(publish(eventSql, stream, "new", 2))
                .extracting(EventPosition::offset)
                .containsExactly(3L, 4L);
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 5);
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8));
        assertPublishedLost(new Range(stream, 0, 3, 8));
        assertThat(lost.revoked()).containsOnly(Reason.HISTORY_CHANGED);
    }

    /** Shown before the fix: the events at the offsets used again were never handled. */
    @Test
    void restore_publisherPassesTheCommittedOffset_newEventsAreHandled() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 8);

        backup.restore(pool);
        try (EventSql other = EventSql.builder(pool).settings(SETTINGS).build()) {
            publish(other, stream, "other", 20);
        }
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 23);
        publish(eventSql, stream, "new", 2);
        awaitAllHandled(stream, handled);
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8));
        assertPublishedLost(new Range(stream, 0, 3, 8));
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

    /** Shown before the fix: the event was stored with offsets of the other stream, and acknowledged. */
    @Test
    void restore_streamIdsAreThoseOfOtherStreams_eventsGoToTheirOwn() throws Exception {
        newStream();
        LogicalBackup backup = LogicalBackup.take(pool);
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 5);

        backup.restore(pool);
        String usurper = stream + "_usurper";
        try (EventSql other = EventSql.builder(pool).settings(SETTINGS).build()) {
            other.createStream(TestStreams.of(usurper).withPartitions(1));
            publish(other, usurper, "x", 7);
            other.createStream(TestStreams.of(stream).withPartitions(1).withSegmentSize(1_000));
        }
        assertThat(publish(eventSql, stream, "new", 2))
                .extracting(EventPosition::offset)
                .containsExactly(0L, 1L);
        assertThat(publish(eventSql, usurper, "y", 1))
                .extracting(EventPosition::offset)
                .containsExactly(7L);
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 2);
        assertPublishedLost(new Range(stream, 0, 0, 5));
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 0, 5));
    }

    @Test
    void restore_streamVanished_publishingSaysSoUntilItIsCreatedAgain() throws Exception {
        newStream();
        LogicalBackup backup = LogicalBackup.take(pool);
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 5);

        backup.restore(pool);
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(() -> publish(eventSql, stream, "new", 1)));
        assertThat(Sql.query(pool, "SELECT name FROM eventsql.stream")).doesNotContain(stream);
        eventSql.createStream(TestStreams.of(stream).withPartitions(1).withSegmentSize(1_000));
        publish(eventSql, stream, "again", 2);
        awaitAllHandled(stream, handled);
        assertPublishedLost(new Range(stream, 0, 0, 5));
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 0, 5));
    }

    @Test
    void reset_incarnationUnchanged_publisherReportsByOffsets() throws Exception {
        String stream = newStream();
        publish(eventSql, stream, "kept", 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);

        backup.restore(pool, INCARNATION);
        assertThat(publish(eventSql, stream, "new", 2))
                .extracting(EventPosition::offset)
                .containsExactly(3L, 4L);
        assertPublishedLost(new Range(stream, 0, 3, 8));
        publish(eventSql, stream, "more", 2);
        assertThat(lost.published()).hasSize(1);
    }

    @Test
    void reset_incarnationUnchanged_memberReportsByItsCommittedOffset() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 8);

        backup.restore(pool, INCARNATION);
        publish(eventSql, stream, "new", 10);
        awaitAllHandled(stream, handled);
        awaitCommitted(stream, 13);
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8));
    }

    @Test
    void reset_incarnationUnchangedAndNothingPublished_memberReportsAtThePoll() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 8);

        backup.restore(pool, INCARNATION);
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8)));
        publish(eventSql, stream, "new", 1);
        awaitAllHandled(stream, handled);
    }

    @Test
    void restore_transactionalHandler_effectsAreThoseOfTheStoredEvents() throws Exception {
        String stream = newStream();
        Sql.execute(pool, "CREATE TABLE effects_" + stream + " (text text)");
        eventSql.subscribeTransactional(
                ConsumerSpec.of(stream, "c"), (StoredEvent event, java.sql.Connection connection) -> {
                    try (var statement = connection.prepareStatement("INSERT INTO effects_" + stream + " VALUES (?)")) {
                        statement.setString(1, event.text());
                        statement.execute();
                    }
                });
        publish(eventSql, stream, "kept", 3);
        awaitCommitted(stream, 3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        awaitCommitted(stream, 8);

        backup.restore(pool);
        publish(eventSql, stream, "new", 10);
        awaitCommitted(stream, 13);
        assertThat(Sql.query(pool, "SELECT text FROM effects_" + stream + " WHERE text NOT LIKE 'lost%'"))
                .as("each effect once")
                .containsExactlyInAnyOrderElementsOf(stored(stream));
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8));
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

    /** The stored epoch alone does not tell a seek from a history in which other members have taken the partition. */
    @Test
    void restore_commitIsLostAndTheEpochWasRaisedSince_isReported() throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        CountDownLatch released = new CountDownLatch(1);
        publish(eventSql, stream, "kept", 8);
        try (EventSql calm = openWithRareHeartbeats()) {
            calm.subscribe(ConsumerSpec.of(stream, "c"), event -> {
                if (event.offset() == 3) {
                    released.await();
                }
                handled.add(event);
            });
            awaitCommitted(stream, 3);
            LogicalBackup backup = LogicalBackup.take(pool);
            released.countDown();
            awaitCommitted(stream, 8);

            backup.restore(pool);
            Sql.query(pool, "SELECT eventsql.raise_epoch_v1(" + consumerId(stream) + ", 0, NULL)");
            publish(eventSql, stream, "after", 1);
            awaitCommitted(stream, 9);
        }
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 3, 8));
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

    /** A member that hears of nothing by its heartbeats. */
    private EventSql openWithRareHeartbeats() {
        return EventSql.builder(pool)
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofSeconds(20))
                        .networkTimeout(Duration.ofSeconds(5))
                        .lease(Duration.ofSeconds(60))
                        .heartbeat(Duration.ofSeconds(20))
                        .build())
                .listener(lost)
                .publishListener(lost)
                .build();
    }

    private static String consumerId(String stream) throws SQLException {
        return Sql.query(pool, CONSUMER_ID, stream).getFirst();
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

    /** Offsets alone do not show this loss: the stored offset is the committed one, and the head is beyond what was fetched. */
    @ParameterizedTest(name = "altered before: {0}")
    @ValueSource(booleans = {false, true})
    void restore_handledEventsWereNotCommittedAndAreReplaced_newEventsAreHandledAndTheLossIsReported(boolean isAltered)
            throws Exception {
        String stream = newStream();
        Handled handled = new Handled();
        eventSql.subscribe(rarelyCommitting(stream), handled::add);
        if (isAltered) {
            alter(stream);
        }
        publish(eventSql, stream, "kept", 3);
        handled.awaitSize(3);
        LogicalBackup backup = LogicalBackup.take(pool);
        publish(eventSql, stream, "lost", 5);
        handled.awaitSize(8);

        backup.restore(pool);
        try (EventSql other = EventSql.builder(pool).settings(SETTINGS).build()) {
            publish(other, stream, "other", 20);
        }
        awaitAllHandled(stream, handled);
        assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED);
        assertThat(lost.consumed()).containsExactly(new Range(stream, 0, 0, 8));
        assertPublishedLost(new Range(stream, 0, 3, 8));
    }

    private static ConsumerSpec rarelyCommitting(String stream) {
        return ConsumerSpec.of(stream, "c").withCommitInterval(Duration.ofSeconds(10));
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
}
