package io.eventsql.move;

import static io.eventsql.move.MoveCluster.STEPS_BEFORE_CLOSING;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.ShardMove;
import io.eventsql.ShardMove.State;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a move that dies after any of its steps is cancelled or completed by another process; nothing is lost, stored twice or
 * handled out of order, and what a cancelled decision has left behind does not disturb a later one.
 *
 * <p>Method: the data sources of the moving process throw after the commit of a step. Tests to which it matters that the third shard has
 * never had keys, or which versions the slot map has had, have a cluster of their own. The others share one: at the end of each all
 * streams are deleted; then the keys move back to the first two shards.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(180)
class MoveStepsIT {
    private static final List<Integer> TWO = List.of(0, 1);
    private static final List<Integer> THREE = List.of(0, 1, 2);

    private static final int STEPS_OF_JOINING = 12;

    private MoveCluster cluster;
    private EventSql steady;
    private String stream;

    @BeforeAll
    void openCluster() {
        cluster = new MoveCluster(3);
        cluster.createWith(2);
        steady = cluster.open(3);
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    @BeforeEach
    void createStream() {
        steady.moveShards(TWO);
        stream = TestStreams.newName();
        steady.createStream(spec(stream));
    }

    @AfterEach
    void deleteStreams() {
        steady.streams().forEach(each -> MoveCluster.delete(steady, each.name()));
    }

    private static StreamSpec spec(String name) {
        return TestStreams.of(name).withPartitions(1);
    }

    private List<String> dieAfter(int number, List<Integer> target) {
        return MoveCluster.dieAfter(cluster.dataSources(), number, target);
    }

    @Test
    void crash_afterEachStep_anotherProcessCancelsOrCompletes() {
        try (MoveCluster own = new MoveCluster(3)) {
            own.createWith(2, spec(stream));
            EventSql process = own.open(3);
            int published = 0;
            Handled handled = new Handled();
            List<String> steps = List.of();
            try (Subscription member = process.subscribe(ConsumerSpec.of(stream, "c"), handled::add)) {
                for (int step = 1; step <= STEPS_OF_JOINING; step++) {
                    steps = MoveCluster.dieAfter(own.dataSources(), step, THREE);
                    publish(process, stream, published, published += 60);
                    State state = process.previewShards(THREE).state();
                    if (step <= STEPS_BEFORE_CLOSING) {
                        assertThat(state).as("after %s", steps).isEqualTo(State.PREPARING);
                        process.cancelShardMove();
                        assertThat(process.previewShards(THREE).state()).isEqualTo(State.PENDING);
                        publish(process, stream, published, published += 60);
                        continue;
                    }
                    if (step < STEPS_OF_JOINING) {
                        assertThat(state).as("after %s", steps).isEqualTo(State.MOVING);
                        assertThat(process.currentShardMove())
                                .map(ShardMove::shards)
                                .hasValue(THREE);
                        assertThatThrownBy(process::cancelShardMove)
                                .hasMessageContaining("cannot be cancelled any more");
                    }
                    assertThat(process.moveShards(THREE).isDone()).isTrue();
                    publish(process, stream, published, published += 60);
                    MoveCluster.dieAfter(own.dataSources(), step, TWO);
                    publish(process, stream, published, published += 60);
                    assertThat(process.moveShards(TWO).isDone()).isTrue();
                    assertThat(process.currentShardMove()).isEmpty();
                    publish(process, stream, published, published += 60);
                }
                handled.awaitSize(published);
            }
            assertThat(steps).as("the last one").endsWith("finish_move");
            assertHandledInOrder(handled, 0, published);
            Handled replayed = new Handled();
            try (EventSql other = own.open(3);
                    Subscription member = other.subscribe(ConsumerSpec.of(stream, "later"), replayed::add)) {
                replayed.awaitSize(published);
            }
            assertHandledInOrder(replayed, 0, published);
        }
    }

    /** A process that was held up continues to cancel, or to prepare, what was decided before the current move. */
    @Test
    void cancel_ofAnEarlierDecision_leavesTheCurrentOneAlone() throws Exception {
        try (MoveCluster own = new MoveCluster(3)) {
            own.createWith(2, spec(stream));
            EventSql process = own.open(3);
            MoveCluster.dieAfter(own.dataSources(), STEPS_BEFORE_CLOSING, THREE);
            process.cancelShardMove();
            MoveCluster.dieAfter(own.dataSources(), STEPS_BEFORE_CLOSING, THREE);
            DataSource receiver = own.dataSources().get(2);
            assertThat(attemptAt(receiver)).isEqualTo(2);
            Sql.execute(receiver, "SELECT eventsql.leave_move_v1(2, 1)");
            assertThat(attemptAt(receiver)).isEqualTo(2);
            Throwable joining = catchThrowable(() -> Sql.execute(
                    receiver, "SELECT eventsql.join_move_v2(2, slot_map, 1, true) FROM eventsql.shard_move"));
            assertThat(joining)
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("ES001"));
            assertThat(process.moveShards(THREE).isDone()).isTrue();
        }
    }

    /** A shard that was to receive keys has partitions for them, which nothing opens before it receives some. */
    @Test
    void cancel_formerReceiverGivesKeys_itsUnusedPartitionsAreNotAwaited() {
        publish(steady, stream, 0, 60);
        dieAfter(STEPS_BEFORE_CLOSING, List.of(0));
        steady.cancelShardMove();
        assertThat(steady.moveShards(THREE).isDone()).isTrue();
        publish(steady, stream, 60, 120);
        Handled handled = new Handled();
        try (Subscription member = steady.subscribe(ConsumerSpec.of(stream, "c"), handled::add)) {
            handled.awaitSize(120);
            assertThat(steady.moveShards(List.of(0)).isDone()).isTrue(); // uses them now
            publish(steady, stream, 120, 180);
            handled.awaitSize(180);
            steady.consumer(stream, "c").seek(StartPosition.EARLIEST);
            handled.awaitSize(360);
        }
        assertThat(handled.texts()).hasSize(360);
    }

    private static long attemptAt(DataSource database) throws SQLException {
        return Sql.queryLong(database, "SELECT attempt FROM eventsql.shard_move");
    }

    @Test
    void createStream_whileKeysMove_movesToo() {
        String early = TestStreams.newName();
        dieAfter(1, THREE);
        steady.createStream(spec(early));
        publish(steady, early, 0, 60);
        assertThat(steady.moveShards(THREE).isDone()).isTrue();
        publish(steady, early, 60, 120);
        Handled handled = new Handled();
        try (Subscription member = steady.subscribe(ConsumerSpec.of(early, "c"), handled::add)) {
            handled.awaitSize(120);
        }
        assertHandledInOrder(handled, 0, 120);
        assertThat(handled.events().stream().map(e -> e.position().shard())).contains(2);
    }

    @Test
    void createStream_afterReceiversAreFrozen_isOpenedByTheMove() {
        String late = TestStreams.newName();
        steady.moveShards(THREE);
        publish(steady, stream, 0, 60);
        dieAfter(8, TWO); // deciding, joining twice, preparing twice, freezing twice, beginning to close
        steady.createStream(spec(late));
        assertThat(steady.moveShards(TWO).isDone()).isTrue();
        publish(steady, late, 0, 120);
        Handled handled = new Handled();
        try (Subscription member = steady.subscribe(ConsumerSpec.of(late, "c"), handled::add)) {
            handled.awaitSize(120);
        }
        assertHandledInOrder(handled, 0, 120);
    }

    /** It is closed on the receivers, which would not open if they had events of it. Keys of other streams are stored. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void publish_streamIsCreatedAfterReceiversAreFrozen_failsUntilTheEndOfTheMove(boolean isCancelled) {
        String late = TestStreams.newName();
        steady.moveShards(THREE);
        dieAfter(7, TWO); // deciding, joining twice, preparing twice, freezing twice
        steady.createStream(spec(late));
        List<CompletableFuture<EventPosition>> failing = new ArrayList<>();
        for (Map.Entry<String, Integer> key : shardsOfKeys(steady).entrySet()) {
            if (key.getValue() != 2) { // the giver
                failing.add(steady.publisher().publishAsync(late, Event.ofText(key.getKey(), "early")));
            }
        }
        List<CompletableFuture<EventPosition>> withoutKey = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            withoutKey.add(steady.publisher().publishAsync(late, Event.ofText("early")));
        }
        publish(steady, stream, 0, 60);
        assertThat(failing)
                .isNotEmpty()
                .allSatisfy(each -> assertThat(each)
                        .failsWithin(Duration.ofSeconds(60))
                        .withThrowableThat()
                        .withMessageContaining("accepts no events on shard"));
        long stored = withoutKey.stream()
                .filter(each -> catchThrowable(() -> each.get(60, TimeUnit.SECONDS)) == null)
                .count();
        if (isCancelled) {
            steady.cancelShardMove();
        } else {
            steady.moveShards(TWO);
        }
        publish(steady, late, 0, 120);
        Handled handled = new Handled();
        try (Subscription member = steady.subscribe(ConsumerSpec.of(late, "c"), handled::add)) {
            handled.awaitSize(120 + (int) stored);
        }
        assertThat(handled.texts().stream().filter("early"::equals)).hasSize((int) stored);
        steady.moveShards(isCancelled ? TWO : THREE);
        publish(steady, late, 120, 180);
    }

    @Test
    void createStream_thatStays_isRejectedWhileKeysMove() {
        try (MoveCluster own = new MoveCluster(3)) {
            own.createWith(2, spec(stream));
            EventSql process = own.open(3);
            String versioned = TestStreams.newName();
            MoveCluster.dieAfter(own.dataSources(), 3, THREE); // all shards know of it
            assertThatThrownBy(() -> process.createStream(spec(versioned).withKeyVersions()))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("keys are being moved between shards");
            assertThatThrownBy(() -> process.alterStream(spec(stream).withCompaction(Compaction.DEFAULT)))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("keys are being moved between shards");
            process.cancelShardMove();
            process.createStream(spec(versioned).withKeyVersions());
            assertThat(process.moveShards(THREE).staying()).containsExactly(versioned);
            assertThat(process.currentShardMove()).isEmpty();
        }
    }

    /** A process that reaches a giver late learns from it that it has closed slots, also while no other shard has said so. */
    @Test
    void publish_giverIsReachedAfterItHasClosedSlots_movedKeysWaitForTheReceiver() throws SQLException {
        try (MoveCluster own = new MoveCluster(3)) {
            own.createWith(2, spec(stream));
            EventSql process = own.open(3);
            Map<String, Integer> before = shardsOfKeys(process);
            assertThat(MoveCluster.dieAfter(own.dataSources(), STEPS_BEFORE_CLOSING + 2, THREE))
                    .endsWith("begin_closing", "close_slots");
            List<SwitchableDataSource> switchable =
                    own.dataSources().stream().map(SwitchableDataSource::new).toList();
            int giver = closedGiver(own);
            switchable.get(giver).setAvailable(false);
            EventSql late = own.open(List.copyOf(switchable));
            switchable.get(giver).setAvailable(true);
            Map<String, CompletableFuture<EventPosition>> during = new TreeMap<>();
            before.keySet()
                    .forEach(key -> during.put(key, late.publisher().publishAsync(stream, Event.ofText(key, "d"))));
            // Keys that stay there are stored, so it is reached.
            await().until(() -> before.entrySet().stream()
                    .anyMatch(entry -> entry.getValue() == giver
                            && during.get(entry.getKey()).isDone()));

            assertThat(process.moveShards(THREE).isDone()).isTrue();

            Map<String, Integer> after = shardsOfKeys(process);
            List<String> moved = before.keySet().stream()
                    .filter(key -> before.get(key) == giver && after.get(key) == 2)
                    .toList();
            assertThat(moved).isNotEmpty();
            assertThat(moved)
                    .allSatisfy(key -> assertThat(
                                    during.get(key).get(1, TimeUnit.MINUTES).shard())
                            .isEqualTo(2));
        }
    }

    /** It has another map than the one that this process has begun with. */
    @Test
    void open_databaseIsReachedAfterTwoMoves_isUsed() throws Exception {
        List<SwitchableDataSource> switchable =
                cluster.dataSources().stream().map(SwitchableDataSource::new).toList();
        switchable.get(1).setAvailable(false);
        try (EventSql late = cluster.open(List.copyOf(switchable))) {
            steady.moveShards(THREE);
            steady.moveShards(TWO);
            switchable.get(1).setAvailable(true);
            String key = shardsOfKeys(steady).entrySet().stream()
                    .filter(entry -> entry.getValue() == 1)
                    .findFirst()
                    .orElseThrow()
                    .getKey();
            assertThat(late.publisher()
                            .publishAsync(stream, Event.ofText(key, "x"))
                            .get(1, TimeUnit.MINUTES)
                            .shard())
                    .isEqualTo(1);
        }
    }

    /** The shard that has closed slots in the move in progress. */
    private static int closedGiver(MoveCluster cluster) throws SQLException {
        for (int shard = 0; shard < 2; shard++) {
            List<String> closed = Sql.query(
                    cluster.dataSources().get(shard),
                    "SELECT shard_number FROM eventsql.shard WHERE former_slot_map IS NOT NULL");
            if (!closed.isEmpty()) {
                return Integer.parseInt(closed.getFirst());
            }
        }
        throw new AssertionError("no shard has closed slots");
    }

    private Map<String, Integer> shardsOfKeys(EventSql eventSql) {
        Map<String, Integer> shards = new TreeMap<>();
        for (int i = 0; i < MoveCluster.KEYS; i++) {
            String key = "key-" + i;
            shards.put(
                    key,
                    eventSql.publisher().publish(stream, Event.ofText(key, "x")).shard());
        }
        return shards;
    }
}
