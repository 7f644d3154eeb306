package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.UnknownStreamException;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.LostHistory.Range;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
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
class HistoryLostIT extends HistoryFixture {
    private static final String INCARNATION = "eventsql.incarnation";

    private static EventsDb eventsDb;

    @BeforeAll
    static void createDatabase() {
        eventsDb = SharedServerDatabase.create();
        pool = Pools.pool(eventsDb);
    }

    @AfterAll
    static void dropDatabase() {
        pool.close();
        eventsDb.close();
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
}
