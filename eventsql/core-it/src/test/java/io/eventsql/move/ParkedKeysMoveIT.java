package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STREAM;
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
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: keys that are parked when they move between shards hold back their own later events, and nothing else; what is parked is
 * redriven in order over all shards.
 *
 * <p>Method: the first events of every sixth key fail. All keys leave a shard, or half of them.
 */
@Timeout(180)
class ParkedKeysMoveIT {
    private static final List<Integer> FIRST = List.of(0);
    private static final List<Integer> SECOND = List.of(1);
    private static final List<Integer> THIRD = List.of(2);
    private static final int PARKED_KEYS = KEYS / 6;
    private static final Duration LONG = Duration.ofSeconds(90);

    private final MoveCluster cluster = new MoveCluster(3);
    private volatile boolean fails = true;
    private volatile Handled handled = new Handled();

    @AfterEach
    void close() {
        cluster.close();
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
                ConsumerSpec.of(STREAM, "c")
                        .withFailurePolicy(FailurePolicy.PARK_KEY)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                this::handle);
    }

    private EventSql open() {
        cluster.create(1);
        return cluster.open(3);
    }

    private static ConsumerControl control(EventSql eventSql) {
        return eventSql.consumer(STREAM, "c");
    }

    private static void awaitNoLag(EventSql eventSql) {
        await().atMost(LONG)
                .untilAsserted(() -> assertThat(control(eventSql).state()).allMatch(state -> state.lag() == 0));
    }

    private static void awaitNothingParked(EventSql eventSql) {
        await().atMost(LONG)
                .untilAsserted(() -> assertThat(control(eventSql).state()).allMatch(state -> state.parkedKeys() == 0));
        assertThat(control(eventSql).parkedEvents(100)).isEmpty();
    }

    private static List<Integer> parked(EventSql eventSql) {
        return control(eventSql).parkedEvents(1_000).stream()
                .map(parked -> Integer.parseInt(parked.event().text()))
                .sorted()
                .toList();
    }

    private static Set<Integer> shardsOfParkedEvents(EventSql eventSql) {
        return control(eventSql).parkedEvents(1_000).stream()
                .map(parked -> parked.event().shard())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static List<EventPosition> parkedOn(EventSql eventSql, int shard) {
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 120);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(List.of(0, 1));
            publish(eventSql, STREAM, 120, 240);
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
            publish(eventSql, STREAM, 240, 300);
            handled.awaitSize(300);
        }
        assertHandledInOrder(handled, 0, 300);
    }

    /** The slots of a shard that leaves are divided between two others. */
    @Test
    void move_severalReceivers_eachParksTheKeysThatItGets() {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(List.of(1, 2));
            publish(eventSql, STREAM, 60, 180);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        eventSql.moveShards(SECOND);
        eventSql.grow(STREAM, 8);
        publish(eventSql, STREAM, 60, 180);
        try (Subscription member = subscribe(eventSql)) {
            assertParked(eventSql, 180);
            assertThat(shardsOfParkedEvents(eventSql)).containsExactly(0, 1);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
            publish(eventSql, STREAM, 180, 240);
            handled.awaitSize(240);
        }
        assertHandledInOrder(handled, 0, 240);
    }

    @Test
    void redrive_giversEventsOnly_receiversFollow() {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 180);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
            assertParked(eventSql, 120);
            control(eventSql).redrive();
            await().atMost(LONG)
                    .untilAsserted(() -> assertThat(control(eventSql).parkedEvents(100))
                            .filteredOn(parked -> parked.event().shard() == 0)
                            .hasSize(PARKED_KEYS)
                            .allMatch(parked -> parked.attempts() == 2));
            publish(eventSql, STREAM, 120, 180);
            assertParked(eventSql, 180);
            fails = false;
            control(eventSql).redrive();
            handled.awaitSize(180);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    @Test
    void drop_giversEvents_receiversContinue() {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 180);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
            assertParked(eventSql, 120);
            assertThat(control(eventSql).drop(parkedOn(eventSql, 1))).isEqualTo(PARKED_KEYS);
            publish(eventSql, STREAM, 120, 180);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
            eventSql.moveShards(THIRD);
            publish(eventSql, STREAM, 120, 180);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        int published = 60;
        for (List<Integer> target : List.of(SECOND, FIRST, SECOND, FIRST)) {
            eventSql.moveShards(target);
            publish(eventSql, STREAM, published, published += 60);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
        }
        eventSql.moveShards(SECOND);
        eventSql.moveShards(THIRD);
        publish(eventSql, STREAM, 60, 120);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 180);
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

    /** A consumer that is created anew has nothing parked, and parks again what fails again. */
    @Test
    void delete_consumerIsCreatedAnew_parksAndHandlesInOrder() {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
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
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
            assertParked(eventSql, 120);
        }
        publish(eventSql, STREAM, 120, 180);
        fails = false;
        control(eventSql).redrive();
        EventSql other = cluster.open(3);
        try (Subscription member = subscribe(other)) {
            handled.awaitSize(180);
            awaitNothingParked(other);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    /** Reports that were read before the consumer was moved, or are repeated, and those of the previous release. */
    @Test
    void report_readBeforeASeekOrRepeated_changesNothing() throws Exception {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            eventSql.moveShards(SECOND);
            publish(eventSql, STREAM, 60, 120);
            assertParked(eventSql, 120);
        }
        assertThat(waitingKeys()).isEqualTo(PARKED_KEYS);
        String report = "SELECT accepted::text || changed FROM eventsql.consumer CROSS JOIN LATERAL"
                + " eventsql.pass_shard_v2(consumer_id, 2, 0, 0, %s) WHERE name = 'c'";
        String none = report.formatted("'{}', '{}'");
        String sameKeys = report.formatted("ARRAY(SELECT key FROM eventsql.parked_key), ARRAY(SELECT 0::bigint)");
        assertThat(query(sameKeys)).as("repeated").containsExactly("truefalse");
        assertThat(waitingKeys()).isEqualTo(PARKED_KEYS);
        query("SELECT eventsql.hold_receivers_v1(consumer_id, '{0}', '{1}') FROM eventsql.consumer WHERE name = 'c'");
        assertThat(query(none)).as("read before the seek").containsExactly("falsefalse");
        assertThat(waitingKeys()).isEqualTo(PARKED_KEYS);
        query("SELECT eventsql.pass_shard_v1(consumer_id, 2, 0, 1) FROM eventsql.consumer WHERE name = 'c'");
        assertThat(waitingKeys()).as("of the previous release").isEqualTo(PARKED_KEYS);
        publish(eventSql, STREAM, 120, 180);
        fails = false;
        control(eventSql).redrive();
        try (Subscription member = subscribe(eventSql)) {
            handled.awaitSize(180);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 180);
    }

    private List<String> query(String sql) throws SQLException {
        return Sql.query(cluster.dataSources().get(1), sql);
    }

    private long waitingKeys() throws SQLException {
        return Sql.queryLong(cluster.dataSources().get(1), "SELECT count(*) FROM eventsql.parked_key WHERE giver = 0");
    }

    /** The shard between has no events of the keys, but knows that they are parked before. */
    @Test
    void removeShard_keysAreParkedBefore_isRejectedUntilTheyAreRedriven() {
        EventSql eventSql = open();
        publish(eventSql, STREAM, 0, 60);
        try (Subscription member = subscribe(eventSql)) {
            awaitNoLag(eventSql);
            eventSql.moveShards(SECOND);
            eventSql.moveShards(THIRD);
            publish(eventSql, STREAM, 60, 120);
            assertParked(eventSql, 120);
        }
        eventSql.clear(STREAM, eventSql.previewClear(STREAM).confirmation());
        assertThatThrownBy(() -> eventSql.removeShard(0)).hasMessageContaining("has parked events there");
        assertThatThrownBy(() -> eventSql.removeShard(1))
                .hasMessageContaining("has parked events on shard shard0 of keys that had moved from there");
        fails = false;
        try (Subscription member = subscribe(eventSql)) {
            control(eventSql).redrive();
            handled.awaitSize(120);
            awaitNothingParked(eventSql);
        }
        assertHandledInOrder(handled, 0, 120);
        eventSql.removeShard(0);
        eventSql.removeShard(1);
    }
}
