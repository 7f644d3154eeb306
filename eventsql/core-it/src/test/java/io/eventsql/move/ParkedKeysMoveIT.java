package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: keys that are parked when they move between shards hold back their own later events, and nothing else; what is parked is
 * redriven in order over all shards.
 *
 * <p>Method: the first events of every sixth key fail. All keys leave a shard, or half of them. Each test has a stream of its own, which
 * is deleted at its end; then all keys move back to the first shard.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(180)
class ParkedKeysMoveIT {
    private static final List<Integer> FIRST = List.of(0);
    private static final List<Integer> SECOND = List.of(1);
    private static final List<Integer> THIRD = List.of(2);
    private static final int PARKED_KEYS = KEYS / 6;
    private static final Duration LONG = Duration.ofSeconds(90);

    private MoveCluster cluster;
    private EventSql eventSql;
    private String stream;
    private volatile boolean fails;
    private volatile Handled handled;

    @BeforeAll
    void openCluster() {
        cluster = new MoveCluster(3);
        cluster.createWith(1);
        eventSql = cluster.open(3);
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    @BeforeEach
    void createStream() {
        fails = true;
        handled = new Handled();
        eventSql.moveShards(FIRST);
        stream = TestStreams.newName();
        eventSql.createStream(MoveCluster.stream(stream));
    }

    @AfterEach
    void deleteStream() {
        MoveCluster.delete(eventSql, stream);
    }

    private static boolean isOfParkedKey(int number) {
        return number % KEYS % 6 == 0;
    }

    private void handle(StoredEvent event) {
        int number = Integer.parseInt(event.text());
        if (fails && number < KEYS && isOfParkedKey(number)) {
            throw new IllegalStateException("fails");
        }
        handled.add(event);
    }

    private Subscription subscribe(EventSql eventSql) {
        return eventSql.subscribe(
                ConsumerSpec.of(stream, "c")
                        .withFailurePolicy(FailurePolicy.PARK_KEY)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                this::handle);
    }

    private ConsumerControl control(EventSql eventSql) {
        return eventSql.consumer(stream, "c");
    }

    private void awaitNoLag(EventSql eventSql) {
        await().atMost(LONG)
                .untilAsserted(() -> assertThat(control(eventSql).state()).allMatch(state -> state.lag() == 0));
    }

    private void awaitNothingParked(EventSql eventSql) {
        await().atMost(LONG)
                .untilAsserted(() -> assertThat(control(eventSql).state()).allMatch(state -> state.parkedKeys() == 0));
        assertThat(control(eventSql).parkedEvents(100)).isEmpty();
    }

    private List<Integer> parked(EventSql eventSql) {
        return control(eventSql).parkedEvents(1_000).stream()
                .map(parked -> Integer.parseInt(parked.event().text()))
                .sorted()
                .toList();
    }

    private Set<Integer> shardsOfParkedEvents(EventSql eventSql) {
        return control(eventSql).parkedEvents(1_000).stream()
                .map(parked -> parked.event().shard())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private List<EventPosition> parkedOn(EventSql eventSql, int shard) {
        return control(eventSql).parkedEvents(1_000).stream()
                .map(ParkedEvent::event)
                .map(StoredEvent::position)
                .filter(position -> position.shard() == shard)
                .toList();
    }

    private static List<Integer> numbersOfParkedKeys(int from, int to) {
        List<Integer> numbers = new ArrayList<>();
        for (int number = from; number < to; number++) {
            if (isOfParkedKey(number)) {
                numbers.add(number);
            }
        }
        return numbers;
    }

    /** Asserts that everything else was handled. */
    private void assertParked(EventSql eventSql, int events) {
        awaitNoLag(eventSql);
        assertThat(parked(eventSql)).isEqualTo(numbersOfParkedKeys(0, events));
        assertThat(handled.texts())
                .hasSize(events - numbersOfParkedKeys(0, events).size());
    }

    @Test
    void move_keysAreParkedOnTheGiver_onlyTheirEventsWait() {
        publish(eventSql, stream, 0, 120);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(List.of(0, 1));
            publish(eventSql, stream, 120, 240);
            assertParked(eventSql, 240);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 1);
            assertThat(control(eventSql).state().stream()
                            .mapToLong(PartitionState::parkedKeys)
                            .sum())
                    .as("keys that have moved are parked on both shards")
                    .isBetween(PARKED_KEYS + 1L, 2L * PARKED_KEYS - 1);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(240);
            awaitNothingParked(eventSql);
            publish(eventSql, stream, 240, 300);
            handled.awaitSize(300);
        }
        assertHandledInOrder(handled, 0, 300);
    }

    /** The slots of a shard that leaves are divided between two others. */
    @Test
    void move_severalReceivers_eachParksTheKeysThatItGets() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(List.of(1, 2));
            publish(eventSql, stream, 60, 180);
            assertParked(eventSql, 180);
            assertThat(control(eventSql).state().stream()
                            .filter(state -> state.shard() > 0)
                            .mapToLong(PartitionState::parkedKeys)
                            .sum())
                    .isEqualTo(PARKED_KEYS);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** Keys move to another partition of their new shard before a member has handled any of them there. */
    @Test
    void grow_keysAreParkedOnTheirFormerShard_theirEventsWaitInTheNewPartitions() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        eventSql.moveShards(SECOND);
        eventSql.grow(stream, 8);
        publish(eventSql, stream, 60, 180);
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, 180);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 1);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
            publish(eventSql, stream, 180, 240);
            handled.awaitSize(240);
        }
        assertHandledInOrder(handled, 0, 240);
    }

    @Test
    void redrive_giversEventsOnly_receiversFollow() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 180);
            assertParked(eventSql, 180);
            fails = false;
            control(eventSql).redrive(parkedOn(eventSql, 0));
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    @Test
    void redrive_failsOnTheGiver_receiversKeepWaiting() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 120);
            assertParked(eventSql, 120);
            control(eventSql).redrive();
            await().atMost(LONG)
                    .untilAsserted(() -> assertThat(control(eventSql).parkedEvents(100))
                            .filteredOn(parked -> parked.event().shard() == 0)
                            .hasSize(PARKED_KEYS)
                            .allMatch(parked -> parked.attempts() == 2));
            publish(eventSql, stream, 120, 180);
            assertParked(eventSql, 180);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    @Test
    void drop_giversEvents_receiversContinue() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 180);
            assertParked(eventSql, 180);
            List<EventPosition> ofGiver = parkedOn(eventSql, 0);
            assertThat(control(eventSql).drop(ofGiver)).isEqualTo(PARKED_KEYS);
            handled.awaitSize(180 - PARKED_KEYS);
            awaitNothingParked(eventSql);
        }
        assertThat(handled.texts()).hasSize(180 - PARKED_KEYS);
        assertThat(handled.events())
                .noneMatch(event -> event.shard() == 0 && isOfParkedKey(Integer.parseInt(event.text())));
    }

    @Test
    void drop_receiversEvents_keyStaysParked() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 120);
            assertParked(eventSql, 120);
            assertThat(control(eventSql).drop(parkedOn(eventSql, 1))).isEqualTo(PARKED_KEYS);
            publish(eventSql, stream, 120, 180);
            awaitNoLag(eventSql);
            assertThat(parkedOn(eventSql, 1)).as("events that came later").hasSize(PARKED_KEYS);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180 - PARKED_KEYS);
            awaitNothingParked(eventSql);
        }
    }

    @Test
    void move_twice_keysStayParkedAndAreRedrivenInOrder() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 120);
            eventSql.moveShards(THIRD);
            publish(eventSql, stream, 120, 180);
            assertParked(eventSql, 180);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 1, 2);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** Shards wait for each other, by maps of different versions. */
    @Test
    void move_awayAndBackTwice_keysStayParkedAndAreRedrivenInOrder() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        int published = 60;
        for (List<Integer> target : List.of(SECOND, FIRST, SECOND, FIRST)) {
            eventSql.moveShards(target);
            publish(eventSql, stream, published, published += 60);
        }
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, published);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(published);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, published);
    }

    /** A key that has no event on the shard between is parked on the next one, too. */
    @Test
    void move_twiceWithoutEventsBetween_keysStayParked() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        eventSql.moveShards(SECOND);
        eventSql.moveShards(THIRD);
        publish(eventSql, stream, 60, 120);
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, 120);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 2);
            fails = false;
            control(eventSql).redrive(parkedOn(eventSql, 0));
            handled.awaitSize(120);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 120);
    }

    @Test
    void seek_toTheBeginning_keysStayParked() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 180);
            assertParked(eventSql, 180);
            handled = new Handled();
            control(eventSql).seek(StartPosition.EARLIEST);
            handled.awaitSize(180 - numbersOfParkedKeys(0, 180).size());
            assertParked(eventSql, 180);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** One receiver rejects reports because of a seek that never comes, while another one accepts them again and again. */
    @Test
    void seek_processDiesBeforeAllReceiversKnow_allContinue() {
        publish(eventSql, stream, 0, 60);
        eventSql.moveShards(List.of(1, 2));
        publish(eventSql, stream, 60, 120);
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, 120);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 1, 2);
        }
        cluster.dieInSeek(2, stream, "c");
        publish(eventSql, stream, 120, 180);
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, 180);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** A consumer that is created anew has nothing parked, and parks again what fails again. */
    @Test
    void delete_consumerIsCreatedAnew_parksAndHandlesInOrder() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 120);
            assertParked(eventSql, 120);
        }
        control(eventSql).delete();
        handled = new Handled();
        try (Subscription member = subscribe(eventSql)) {
            handled.awaitSize(120 - numbersOfParkedKeys(0, 120).size());
            assertParked(eventSql, 120);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(120);
        }
        assertHandledInOrder(handled, 0, 120);
    }

    /** What the receiver knows of parked keys is stored there, not in the process that has reported it. */
    @Test
    void close_processThatHasReported_anotherOneContinues() {
        publish(eventSql, stream, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, stream, 60, 120);
            assertParked(eventSql, 120);
        }
        publish(eventSql, stream, 120, 180);
        fails = false;
        control(eventSql).redrive();
        try (EventSql other = cluster.open(3);
                Subscription member = subscribe(other)) {
            handled.awaitSize(180);
            awaitNothingParked(other);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** Reports that were read before the consumer was moved, or are repeated, and those of the previous release. */
    @Test
    void report_readBeforeASeekOrRepeated_changesNothing() throws Exception {
        try (MoveCluster own = new MoveCluster(2)) {
            own.createWith(1, MoveCluster.stream(stream));
            EventSql process = own.open(2);
            DataSource receiver = own.dataSources().get(1);
            publish(process, stream, 0, 60);
            try (Subscription member = subscribe(process)) {
                process.moveShards(SECOND);
                publish(process, stream, 60, 120);
                assertParked(process, 120);
            }
            assertThat(waitingKeys(receiver)).isEqualTo(PARKED_KEYS);
            String report = "SELECT accepted::text || changed FROM eventsql.consumer CROSS JOIN LATERAL"
                    + " eventsql.pass_shard_v2(consumer_id, 2, 0, 0, %s) WHERE name = 'c'";
            String none = report.formatted("'{}', '{}'");
            String sameKeys = report.formatted("ARRAY(SELECT key FROM eventsql.parked_key), ARRAY(SELECT 0::bigint)");
            assertThat(Sql.query(receiver, sameKeys)).as("repeated").containsExactly("truefalse");
            assertThat(waitingKeys(receiver)).isEqualTo(PARKED_KEYS);
            Sql.query(
                    receiver,
                    "SELECT eventsql.hold_receivers_v1(consumer_id, '{0}', '{1}') FROM eventsql.consumer WHERE name = 'c'");
            assertThat(Sql.query(receiver, none)).as("read before the seek").containsExactly("falsefalse");
            assertThat(waitingKeys(receiver)).isEqualTo(PARKED_KEYS);
            Sql.query(
                    receiver,
                    "SELECT eventsql.pass_shard_v1(consumer_id, 2, 0, 1) FROM eventsql.consumer WHERE name = 'c'");
            assertThat(waitingKeys(receiver)).as("of the previous release").isEqualTo(PARKED_KEYS);
            publish(process, stream, 120, 180);
            fails = false;
            control(process).redrive();
            try (Subscription member = subscribe(process)) {
                handled.awaitSize(180);
                awaitNothingParked(process);
            }
            assertHandledInOrder(handled, 0, 180);
        }
    }

    private static long waitingKeys(DataSource receiver) throws SQLException {
        return Sql.queryLong(receiver, "SELECT count(*) FROM eventsql.parked_key WHERE giver = 0");
    }

    /** The shard between has no events of the keys, but knows that they are parked before. */
    @Test
    void removeShard_keysAreParkedBefore_isRejectedUntilTheyAreRedriven() {
        try (MoveCluster own = new MoveCluster(3)) {
            own.createWith(1, MoveCluster.stream(stream));
            EventSql process = own.open(3);
            publish(process, stream, 0, 60);
            try (Subscription member = subscribe(process)) {
                awaitNoLag(process);
                process.moveShards(SECOND);
                process.moveShards(THIRD);
                publish(process, stream, 60, 120);
                assertParked(process, 120);
            }
            process.clear(stream, process.previewClear(stream).confirmation());
            assertThatThrownBy(() -> process.removeShard(0)).hasMessageContaining("has parked events there");
            assertThatThrownBy(() -> process.removeShard(1))
                    .hasMessageContaining("has parked events on shard shard0 of keys that had moved from there");
            fails = false;
            try (Subscription member = subscribe(process)) {
                control(process).redrive();
                handled.awaitSize(120);
                awaitNothingParked(process);
            }
            assertHandledInOrder(handled, 0, 120);
            process.removeShard(0);
            process.removeShard(1);
        }
    }
}
