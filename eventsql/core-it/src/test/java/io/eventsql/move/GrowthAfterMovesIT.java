package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STEPS_BEFORE_CLOSING;
import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.dieAfter;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Growth.ShardGrowth;
import io.eventsql.Growth.State;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Goal: streams grow before, between and after moves of keys between shards; every consumer handles the events of each key in order,
 * and none waits forever.
 */
@Timeout(180)
class GrowthAfterMovesIT {
    private static final List<Integer> FIRST = List.of(0);
    private static final List<Integer> TWO = List.of(0, 1);
    private static final List<Integer> THREE = List.of(0, 1, 2);

    private final MoveCluster cluster = new MoveCluster(3);
    private EventSql eventSql;
    private int published;

    @BeforeEach
    void open() {
        cluster.create(2);
        eventSql = cluster.open(3);
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private void publishMore() {
        publish(eventSql, STREAM, published, published += 2 * KEYS);
    }

    /** Has a new consumer handle everything from the beginning. */
    private Handled replay() {
        Handled handled = new Handled();
        try (Subscription member = cluster.open(3).subscribe(ConsumerSpec.of(STREAM, "replay"), handled::add)) {
            handled.awaitSize(published);
        }
        assertHandledInOrder(handled, 0, published);
        return handled;
    }

    private static List<Integer> partitionsOn(int shard, List<StoredEvent> events) {
        return events.stream()
                .filter(event -> event.shard() == shard)
                .map(StoredEvent::partition)
                .distinct()
                .sorted()
                .toList();
    }

    @Test
    void grow_betweenMoves_keepsOrderOfKeysAndUsesNewPartitions() {
        EventSql outdated = cluster.open(3);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add)) {
            publishMore();
            eventSql.moveShards(List.of(1, 2)); // a shard leaves, another one joins, and one gets more keys
            publishMore();
            assertThat(eventSql.grow(STREAM, 7).shards())
                    .extracting(ShardGrowth::partitions)
                    .containsExactly(2, 7, 7);
            publishMore();
            publish(outdated, STREAM, published, published += 2 * KEYS);
            eventSql.moveShards(THREE);
            publishMore();
            assertThat(eventSql.grow(STREAM, 12).isDone()).isTrue();
            publishMore();
            eventSql.moveShards(FIRST);
            publishMore();
            handled.awaitSize(published);
        }
        assertHandledInOrder(handled, 0, published);
        assertThat(partitionsOn(1, handled.events())).contains(2, 3, 4, 5, 6);
        assertThat(partitionsOn(2, handled.events())).contains(2, 3, 4, 5, 6);
        replay();
    }

    @Test
    void grow_shardHasHadNoKeys_itsPartitionsAreUsedWhenItGetsSome() {
        publishMore();
        assertThat(eventSql.grow(STREAM, 5).shards()) // number 2 is spare
                .extracting(ShardGrowth::partitions)
                .containsExactly(5, 5, 5);
        eventSql.cancelGrowth(STREAM);
        assertThat(eventSql.previewGrowth(STREAM, 5).isDone())
                .as("what the map names stays")
                .isTrue();
        publishMore();
        eventSql.moveShards(List.of(2));
        publishMore();
        assertThat(partitionsOn(2, replay().events())).containsExactly(0, 1, 2, 3, 4);
    }

    @Test
    void grow_whileKeysMove_isRejectedAndPossibleOnceThatIsCancelled() {
        publishMore();
        dieAfter(cluster.dataSources(), STEPS_BEFORE_CLOSING, FIRST);
        assertThatThrownBy(() -> eventSql.grow(STREAM, 5))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("are being moved between shards");
        eventSql.cancelShardMove();
        assertThat(eventSql.previewGrowth(STREAM, 5).shards())
                .extracting(ShardGrowth::partitions)
                .containsExactly(2, 2, 2);
        assertThat(eventSql.grow(STREAM, 5).isDone()).isTrue();
        publishMore();
        eventSql.moveShards(THREE);
        publishMore();
        assertThat(partitionsOn(0, replay().events())).containsExactly(0, 1, 2, 3, 4);
    }

    /** Keys go away and come back; partitions that were closed all the time get some of them last. */
    @Test
    void grow_partitionsWereClosedWhenKeysMoved_theyAreNotAwaited() throws SQLException {
        publishMore();
        Sql.execute(
                cluster.dataSources().get(0),
                "SELECT eventsql.prepare_growth_v1(stream_id, 10) FROM eventsql.stream WHERE name = '" + STREAM + "'");
        eventSql.moveShards(THREE);
        publishMore();
        eventSql.moveShards(TWO);
        publishMore();
        assertThat(eventSql.grow(STREAM, 10).shards().getFirst())
                .extracting(ShardGrowth::state, ShardGrowth::partitions)
                .containsExactly(State.GROWN, 10);
        publishMore();
        assertThat(partitionsOn(0, replay().events())).hasSizeGreaterThan(5);
    }

    /** A partition that keys have moved to is empty when the stream grows: its keys have earlier events on another shard. */
    @Test
    void grow_partitionOfMovedKeysIsEmpty_newPartitionsWaitForTheFormerShard() {
        publishMore();
        eventSql.moveShards(FIRST);
        eventSql.grow(STREAM, 12);
        eventSql.moveShards(TWO);
        eventSql.grow(STREAM, 20);
        publishMore();
        replay();
    }

    /** A receiver wants as many fresh partitions as it has, and this stream can have only one more. */
    @Test
    @EnabledIfSystemProperty(
            named = "eventsql.test.wide",
            matches = "true",
            disabledReason = "creates 2,000 partitions, which takes half a minute: -Deventsql.test.wide=true")
    void move_streamWithNearlyAsManyPartitionsAsPossible_getsFewerThenNone() {
        String wide = "wide";
        eventSql.createStream(TestStreams.of(wide).withPartitions(StreamSpec.PARTITIONS_MAX - 1));
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(wide, "c"), handled::add)) {
            publish(eventSql, wide, 0, 2 * KEYS);
            eventSql.moveShards(FIRST);
            publish(eventSql, wide, 2 * KEYS, 4 * KEYS);
            eventSql.moveShards(TWO);
            assertThatThrownBy(() -> eventSql.moveShards(FIRST))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("has 1000 partitions, so no keys can move there");
            eventSql.cancelShardMove();
            publish(eventSql, wide, 4 * KEYS, 6 * KEYS);
            handled.awaitSize(6 * KEYS);
        }
        assertHandledInOrder(handled, 0, 6 * KEYS);
        assertThat(partitionsOn(0, handled.events())).endsWith(StreamSpec.PARTITIONS_MAX - 1);
    }
}
