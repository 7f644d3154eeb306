package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.ConsumerSummary;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Start positions of a consumer, and its control: seek, pause, resume, state, delete. */
class ConsumerControlIT extends ConsumerFixture {
    private ConsumerControl control(String stream) {
        return eventSql.consumer(stream, "c");
    }

    private Instant publishedAt(String stream, long offset) {
        return eventSql.read(new EventPosition(stream, 0, 0, offset), 1)
                .getFirst()
                .publishedAt();
    }

    @Test
    void start_atTime_beginsWithFirstEventAtOrAfterIt() {
        String stream = newStream(1);
        for (int i = 0; i < 30; i++) {
            publish(stream, i * 100, i * 100 + 100, 10); // over three segments, each batch with its own timestamp
        }
        for (long first : List.of(0L, 100L, 1_000L, 1_500L, 2_900L)) {
            Handled handled = new Handled();
            String name = "at" + first;
            try (Subscription ignored = eventSql.subscribe(
                    ConsumerSpec.of(stream, name).withStartPosition(StartPosition.at(publishedAt(stream, first))),
                    handled::add)) {
                handled.awaitSize((int) (3_000 - first));
            }
            assertThat(handled.texts()).containsExactlyElementsOf(texts((int) first, 3_000));
        }
        Handled none = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                consumer(stream)
                        .withStartPosition(StartPosition.at(Instant.now().plus(Duration.ofHours(1)))),
                none::add)) {
            publish(stream, 3_000, 3_010, 10);
            none.awaitSize(10);
        }
        assertThat(none.texts()).containsExactlyElementsOf(texts(3_000, 3_010));
    }

    @Test
    void start_atOffset_beginsThere() {
        String stream = newStream(1);
        publish(stream, 0, 50, 10);
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribe(consumer(stream).withStartPosition(StartPosition.atOffset(20)), handled::add)) {
            handled.awaitSize(30);
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(20, 50));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void seek_whileMembersHandle_continuesThereWithoutRestart(boolean handlerRunning) throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 100, 10);
        Handled handled = new Handled();
        CountDownLatch started = new CountDownLatch(handlerRunning ? 1 : 0);
        CountDownLatch release = new CountDownLatch(handlerRunning ? 1 : 0);
        try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {
            if (handlerRunning && handled.size() == 50) {
                started.countDown();
                release.await();
            }
            handled.add(event);
        })) {
            if (handlerRunning) {
                started.await();
            } else {
                handled.awaitSize(100);
                awaitLag(stream, 0);
            }
            control(stream).seek(new EventPosition(stream, 0, 0, 40));
            await().until(() -> handlerRunning || handled.size() == 160);
            release.countDown();
            // If the handler is running: 0 to 50, then everything again from 40.
            handled.awaitSize(handlerRunning ? 51 + 60 : 160);
            awaitLag(stream, 0);
            assertThat(handled.texts().subList(handlerRunning ? 51 : 100, handled.size()))
                    .containsExactlyElementsOf(texts(40, 100));
        }
    }

    @Test
    void seek_earliest_replaysAllEventsAndLatestSkipsThem() {
        String stream = newStream();
        publish(stream, 0, 100, 20);
        Handled handled = new Handled();
        Subscription member = eventSql.subscribe(consumer(stream), handled::add);
        handled.awaitSize(100);
        control(stream).seek(StartPosition.EARLIEST);
        handled.awaitSize(200);
        awaitLag(stream, 0);
        member.close();
        publish(stream, 100, 200, 20);
        control(stream).seek(StartPosition.LATEST); // works without members, too
        try (Subscription ignored = eventSql.subscribe(consumer(stream), handled::add)) {
            publish(stream, 200, 210, 20);
            handled.awaitSize(210);
            awaitLag(stream, 0);
        }
        assertThat(handled.texts().subList(200, 210)).containsExactlyInAnyOrderElementsOf(texts(200, 210));
    }

    @Test
    void seek_offsetThatDoesNotExist_isRejectedAndMovesNothing() throws SQLException {
        String stream = newStream(2);
        int written = partitionOfKey(stream);
        Handled handled = new Handled();
        Subscription member = eventSql.subscribe(consumer(stream), handled::add);
        handled.awaitSize(1);
        awaitLag(stream, 0);
        member.close();
        ConsumerControl control = control(stream);

        assertRejected("position.offset", () -> control.seek(new EventPosition(stream, 0, written, 2)));
        assertRejected("position.offset", () -> control.seek(StartPosition.atOffset(1))); // the other one is empty
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> control.seek(new EventPosition(stream, 0, written, 1_000_000)))
                .withMessageContaining("must be between 0 (log start) and 1 (head)")
                .withMessageContaining("but is 1000000");
        Sql.execute(
                cluster.dataSources().getFirst(),
                "UPDATE eventsql.stream_partition SET log_start = 1 WHERE partition = " + written
                        + " AND stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "')");
        assertRejected("position.offset", () -> control.seek(new EventPosition(stream, 0, written, 0)));
        assertThat(state(stream)).extracting(PartitionState::lag).containsExactly(0L, 0L);

        control.seek(new EventPosition(stream, 0, written, 1)); // the head
    }

    private int partitionOfKey(String stream) {
        return eventSql.publisher().publish(stream, Event.ofText("k", "0")).partition();
    }

    @Test
    void seek_consumerThatWasNeverStarted_isRejected() {
        String stream = newStream(1);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> control(stream).seek(StartPosition.EARLIEST))
                .withMessageContaining("There is no consumer c");
    }

    @Test
    void consumers_ofAShard_areSummedUpWithoutMembers() {
        String stream = newStream(2);
        int written = partitionOfKey(stream);
        eventSql.subscribe(consumer(stream), event -> {}).close();
        ConsumerSummary before = summary(stream);
        assertThat(before.lag() + before.nextOffsets()).isEqualTo(1);
        control(stream).seek(new EventPosition(stream, 0, written, 0));

        assertSummary(stream, 0, 2);
        control(stream).pause();
        assertSummary(stream, 2, 0);
        assertThat(eventSql.consumers(0, 1)).hasSize(1);
        assertRejected("shard", () -> eventSql.consumers(1, 1));
        assertRejected("max", () -> eventSql.consumers(0, 0));
    }

    private void assertSummary(String stream, int paused, int unassigned) {
        ConsumerSummary summary = summary(stream);
        assertThat(summary.behind()).isPositive();
        assertThat(summary)
                .isEqualTo(
                        new ConsumerSummary(stream, "c", 0, 0, 2, 0, paused, unassigned, 1, summary.behind(), 0, 0, 0));
    }

    private ConsumerSummary summary(String stream) {
        return eventSql.consumers(0, ConsumerSummary.CONSUMERS_MAX).stream()
                .filter(summary -> summary.stream().equals(stream))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void pause_runningMembers_completeAndWaitUntilResumed() {
        String stream = newStream();
        Handled handled = new Handled();
        EventSql other = cluster.open();
        try (Subscription one = eventSql.subscribe(consumer(stream), handled::add);
                Subscription two = other.subscribe(consumer(stream), handled::add)) {
            publish(stream, 0, 100, 20);
            handled.awaitSize(100);
            control(stream).pause();
            await().until(() ->
                    state(stream).stream().allMatch(p -> p.status() == Status.PAUSED && p.member() == null));
            publish(stream, 100, 200, 20);
            assertThat(state(stream).stream().mapToLong(PartitionState::lag).sum())
                    .isEqualTo(100);
            assertThat(handled.size()).as("events handled before the pause").isEqualTo(100);
            control(stream).resume();
            handled.awaitSize(200);
            awaitLag(stream, 0);
            assertThat(one.isRunning() && two.isRunning()).isTrue();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 200));
    }

    /** Drops the first segment, as retention would: the log starts after it. */
    private void dropFirstSegment(String stream) throws SQLException {
        Sql.execute(
                cluster.dataSources().getFirst(),
                "ALTER TABLE eventsql.events_" + stream + "__p0 DETACH PARTITION eventsql.events_" + stream + "__p0_s0",
                "DROP TABLE eventsql.events_" + stream + "__p0_s0",
                "UPDATE eventsql.stream_partition SET log_start = 1000 WHERE partition = 0 AND stream_id ="
                        + " (SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "')");
    }

    @ParameterizedTest
    @EnumSource(OutOfRangePolicy.class)
    void outOfRange_segmentDropped_followsPolicy(OutOfRangePolicy policy) throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 1_500, 10);
        dropFirstSegment(stream);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(
                consumer(stream).withStartPosition(StartPosition.atOffset(10)).withOutOfRangePolicy(policy),
                handled::add)) {
            switch (policy) {
                case FAIL -> {
                    awaitStatus(stream, Status.STOPPED);
                    assertThat(state(stream).getFirst().error())
                            .isEqualTo("offset 10 no longer exists: the log begins at 1000");
                    assertThat(handled.size()).isZero();
                    control(stream).seek(new EventPosition(stream, 0, 0, 1_200));
                    control(stream).resume();
                    handled.awaitSize(300);
                }
                case EARLIEST -> handled.awaitSize(500);
                case LATEST -> {
                    awaitLag(stream, 0);
                    publish(stream, 1_500, 1_600, 10);
                    handled.awaitSize(100);
                }
            }
            awaitLag(stream, 0);
            assertThat(member.isRunning()).isTrue();
        }
        int first = policy == OutOfRangePolicy.FAIL ? 1_200 : policy == OutOfRangePolicy.EARLIEST ? 1_000 : 1_500;
        int last = policy == OutOfRangePolicy.LATEST ? 1_600 : 1_500;
        assertThat(handled.texts()).containsExactlyElementsOf(texts(first, last));
    }

    @Test
    void outOfRange_offsetBeyondHead_stopsUnderAnyPolicy() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 10, 10);
        try (Subscription ignored =
                eventSql.subscribe(consumer(stream).withOutOfRangePolicy(OutOfRangePolicy.EARLIEST), event -> {})) {
            awaitLag(stream, 0);
        }
        // As after a failover to a replica that lacks the last events.
        Sql.execute(
                cluster.dataSources().getFirst(),
                "DELETE FROM eventsql.events_" + stream + " WHERE event_offset >= 5",
                "UPDATE eventsql.producer_batch SET next_offset = 5 WHERE next_offset = 10 AND stream_id ="
                        + " (SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "')");
        try (Subscription ignored =
                eventSql.subscribe(consumer(stream).withOutOfRangePolicy(OutOfRangePolicy.EARLIEST), event -> {})) {
            awaitStatus(stream, Status.STOPPED);
            assertThat(state(stream).getFirst().error())
                    .isEqualTo("offset 10 is beyond the log's head 5: the log has lost its end, or it is another log");
        }
    }

    @Test
    void state_runningConsumer_showsEveryPartition() {
        String stream = newStream(2);
        assertThat(state(stream)).isEmpty();
        eventSql.publisher().publish(stream, Event.ofText("k", "0"));
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {
            release.await();
            handled.add(event);
        })) {
            await().until(() -> state(stream).stream().allMatch(p -> p.member() != null));
            List<PartitionState> states = state(stream);
            PartitionState behind =
                    states.stream().filter(p -> p.lag() == 1).findFirst().orElseThrow();
            await().untilAsserted(() -> assertThat(
                            state(stream).get(behind.partition()).behind())
                    .isBetween(Duration.ofMillis(1), Duration.ofMinutes(1)));
            assertThat(states).extracting(PartitionState::partition).containsExactly(0, 1);
            assertThat(states).allSatisfy(p -> {
                assertThat(p.status()).isEqualTo(Status.RUNNING);
                assertThat(p.error()).isNull();
                assertThat(p.epoch()).isEqualTo(1);
                assertThat(p.leaseUntil()).isAfter(p.committedAt());
                assertThat(p.member()).contains("/" + ProcessHandle.current().pid() + "/");
                assertThat(p.nextOffset()).isZero();
                assertThat(p.parkedKeys() + p.parkedEvents()).isZero();
            });
            release.countDown();
            awaitLag(stream, 0);
            assertThat(state(stream)).allMatch(p -> p.behind().isZero());
        }
    }

    @Test
    void delete_runningConsumer_stopsMembersAndRemovesIt() {
        String stream = newStream();
        publish(stream, 0, 10, 10);
        Handled handled = new Handled();
        Subscription member = eventSql.subscribe(consumer(stream), handled::add);
        handled.awaitSize(10);
        awaitLag(stream, 0);
        control(stream).delete();
        await().until(() -> !member.isRunning());
        assertThat(state(stream)).isEmpty();
        member.close();
        try (Subscription ignored = eventSql.subscribe(consumer(stream), handled::add)) {
            handled.awaitSize(20); // a new consumer of that name starts from the beginning
        }
    }

    /** As with millions of parked events. */
    @Test
    void delete_takesLongerThanTheNetworkTimeout_isDone() throws SQLException {
        String stream = newStream();
        try (EventSql impatient = cluster.open(settings -> settings.networkTimeout(Duration.ofSeconds(2)));
                Subscription ignored = impatient.subscribe(ConsumerSpec.of(stream, "slow"), event -> {})) {
            await().until(() -> !impatient.consumer(stream, "slow").state().isEmpty());
        }
        Sql.execute(
                cluster.dataSources().getFirst(),
                "CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$"
                        + " BEGIN PERFORM pg_sleep(4); RETURN OLD; END $$",
                "CREATE TRIGGER delay BEFORE DELETE ON eventsql.consumer"
                        + " FOR EACH ROW WHEN (OLD.name = 'slow') EXECUTE FUNCTION delay()");
        try (EventSql impatient = cluster.open(settings -> settings.networkTimeout(Duration.ofSeconds(2)))) {
            impatient.consumer(stream, "slow").delete();
            assertThat(impatient.consumer(stream, "slow").state()).isEmpty();
        } finally {
            Sql.execute(cluster.dataSources().getFirst(), "DROP FUNCTION delay CASCADE");
        }
    }

    @Test
    void control_invalidInput_isRejectedNamingTheField() {
        String stream = newStream();
        ConsumerControl control = control(stream);
        assertRejected("position.stream", () -> control.seek(new EventPosition("other", 0, 0, 0)));
        assertRejected("position.shard", () -> control.seek(new EventPosition(stream, 1, 0, 0)));
        assertRejected("position.partition", () -> control.seek(new EventPosition(stream, 0, PARTITIONS, 0)));
        assertRejected("position.offset", () -> control.seek(new EventPosition(stream, 0, 0, -1)));
        assertRejected("max", () -> control.parkedEvents(0));
        assertRejected("position.stream", () -> control.drop(List.of(new EventPosition("other", 0, 0, 0))));
        assertRejected("consumer.name", () -> eventSql.consumer(stream, "A b"));
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> eventSql.consumer("no_such_stream", "c"));
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> control.seek(new EventPosition(stream, 0, 0, 0)))
                .withMessageContaining("no consumer c");
        control.pause(); // no effect on a consumer that was never started
        assertThat(control.redrive()).isZero();
        assertThat(control.parkedEvents(1)).isEqualTo(List.<StoredEvent>of());
    }

    private static void assertRejected(String field, Runnable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call::run)
                .satisfies(e -> assertThat(e.field()).isEqualTo(field));
    }
}
