package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.dieAfter;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.ExpectedVersion;
import io.eventsql.ShardMove;
import io.eventsql.ShardMove.State;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: compacted streams and those that count the events of keys stay on their shards while the keys of others move: for each
 * process, whether or not it has noticed, after a crash at any step, and for every way in which events are published and read.
 */
@Timeout(180)
class StationaryStreamsIT {
    private static final List<Integer> TWO = List.of(0, 1);
    private static final List<Integer> THREE = List.of(0, 1, 2);
    private static final List<Integer> FOUR = List.of(0, 1, 2, 3);
    private static final String KEPT_VERSIONS = "SELECT map_version::text FROM eventsql.stationary_stream";
    private static final String COUNTED = "counted";
    private static final int COUNTED_KEYS = 12;
    /** Deciding, joining on two other shards, keeping streams on all, preparing the moving stream, and freezing the receiver. */
    private static final int STEPS_BEFORE_CLOSING = 8;
    /** Beginning, closing on two shards, opening one, and recording the slots on all. */
    private static final int STEPS_OF_JOINING = 15;

    private final MoveCluster cluster = new MoveCluster(3);

    @BeforeEach
    void createCluster() {
        cluster.create(2);
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    /** Publishes an event for each of some keys, which have as many as there were calls before. */
    private static Map<String, Integer> publishCounted(EventSql eventSql, int version) {
        Map<String, CompletableFuture<EventPosition>> calls = new TreeMap<>();
        for (int i = 0; i < COUNTED_KEYS; i++) {
            Event event = Event.ofText("key-" + i, Integer.toString(version));
            calls.put("key-" + i, eventSql.publisher().publishAsync(COUNTED, event, ExpectedVersion.of(version)));
        }
        Map<String, Integer> shards = new TreeMap<>();
        calls.forEach((key, call) -> shards.put(key, call.join().shard()));
        return shards;
    }

    private static void assertCounted(EventSql eventSql, int version) {
        for (int i = 0; i < COUNTED_KEYS; i++) {
            assertThat(eventSql.keyVersion(COUNTED, "key-" + i)).isEqualTo(version);
            assertThat(eventSql.readKey(COUNTED, "key-" + i).events())
                    .extracting(StoredEvent::text)
                    .containsExactlyElementsOf(IntStream.range(0, version)
                            .mapToObj(Integer::toString)
                            .toList());
        }
    }

    @Test
    void move_countedStream_continuesWithItsVersionsInAllProcesses() throws Exception {
        EventSql other = cluster.open(3);
        EventSql idle = cluster.open(3);
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        Map<String, Integer> shards = publishCounted(three, 0);
        assertThat(new HashSet<>(shards.values())).containsExactlyInAnyOrder(0, 1);
        assertThat(publishCounted(other, 1)).isEqualTo(shards);
        publish(other, STREAM, 0, KEYS);
        ShardMove preview = three.previewShards(List.of(1, 2));
        assertThat(preview.streams()).containsExactly(STREAM);
        assertThat(preview.staying()).containsExactly(COUNTED);

        assertThat(three.moveShards(List.of(1, 2)).isDone()).isTrue();

        publish(other, STREAM, KEYS, 2 * KEYS); // from now on it knows the slots
        assertThat(publishCounted(other, 2)).as("shard 0 has left").isEqualTo(shards);
        assertThat(publishCounted(three, 3)).isEqualTo(shards);
        assertCounted(idle, 4);
        assertThat(publishCounted(idle, 4)).isEqualTo(shards);
        EventSql later = cluster.open(3);
        assertCounted(later, 5);
        for (int i = 0; i < COUNTED_KEYS; i++) {
            DataSource owner = cluster.dataSources().get(shards.get("key-" + i));
            try (Connection transaction = owner.getConnection()) {
                transaction.setAutoCommit(false);
                later.outbox().publish(transaction, COUNTED, Event.ofText("key-" + i, "5"), ExpectedVersion.of(5));
                transaction.commit();
            }
        }
        Handled handled = new Handled();
        try (Subscription member = later.subscribe(ConsumerSpec.of(COUNTED, "c"), handled::add)) {
            handled.awaitSize(6 * COUNTED_KEYS);
        }
        assertCounted(three, 6);
        Handled moved = new Handled();
        try (Subscription member = later.subscribe(ConsumerSpec.of(STREAM, "c"), moved::add)) {
            moved.awaitSize(2 * KEYS);
        }
        assertHandledInOrder(moved, 0, 2 * KEYS);
        assertThat(moved.events()).extracting(event -> event.position().shard()).contains(2);
    }

    /** Two processes know the stream on all shards as it was before it had compaction. All keys of shard 0 move to shard 2. */
    @Test
    void move_streamBecameCompacted_theLastEventOfEachKeyIsFound() {
        EventSql outdated = cluster.open(3);
        EventSql reading = cluster.open(3);
        EventSql three = cluster.open(3);
        for (EventSql eventSql : List.of(three, outdated, reading)) {
            eventSql.createStream(MoveCluster.stream("state"));
        }
        publish(outdated, "state", 0, KEYS);
        publish(reading, "state", KEYS, 2 * KEYS);
        three.alterStream(MoveCluster.stream("state").withCompaction(Compaction.DEFAULT));
        three.moveShards(List.of(1, 2));
        for (EventSql eventSql : List.of(outdated, reading)) { // both know the slots now
            publish(eventSql, STREAM, 0, KEYS);
        }
        String ofShard0 = IntStream.range(0, KEYS)
                .mapToObj(i -> "key-" + i)
                .filter(key ->
                        three.latest("state", key).orElseThrow().position().shard() == 0)
                .findFirst()
                .orElseThrow();
        assertThat(reading.latest("state", ofShard0).map(StoredEvent::text))
                .as("the first question")
                .isPresent()
                .isEqualTo(three.latest("state", ofShard0).map(StoredEvent::text));
        publish(outdated, "state", 2 * KEYS, 3 * KEYS);
        for (int i = 0; i < KEYS; i++) {
            for (EventSql eventSql : List.of(outdated, reading, three)) {
                StoredEvent last = eventSql.latest("state", "key-" + i).orElseThrow();
                assertThat(last.text()).isEqualTo(Integer.toString(i + 2 * KEYS));
                assertThat(last.position().shard()).isLessThan(2);
            }
        }
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(ConsumerSpec.of("state", "c"), handled::add)) {
            handled.awaitSize(3 * KEYS);
        }
        assertHandledInOrder(handled, 0, 3 * KEYS);
    }

    @Test
    void crash_afterEachStep_streamsStay() {
        EventSql steady = cluster.open(3);
        EventSql other = cluster.open(3);
        steady.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        Map<String, Integer> shards = publishCounted(steady, 0);
        int version = 1;
        int published = 0;
        List<String> steps = List.of();
        for (int step = 1; step <= STEPS_OF_JOINING; step++) {
            steps = dieAfter(cluster.dataSources(), step, THREE);
            assertThat(publishCounted(other, version++)).as("after %s", steps).isEqualTo(shards);
            publish(other, STREAM, published, published += KEYS);
            assertThat(publishCounted(steady, version++)).as("after %s", steps).isEqualTo(shards);
            if (step <= STEPS_BEFORE_CLOSING) {
                assertThat(steady.previewShards(THREE).state())
                        .as("after %s", steps)
                        .isEqualTo(State.PREPARING);
                steady.cancelShardMove();
                assertThat(publishCounted(other, version++)).isEqualTo(shards);
                continue;
            }
            assertThat(steady.moveShards(THREE).isDone()).isTrue();
            assertThat(publishCounted(other, version++)).isEqualTo(shards);
            publish(steady, STREAM, published, published += KEYS);
            dieAfter(cluster.dataSources(), step, TWO);
            assertThat(publishCounted(steady, version++)).isEqualTo(shards);
            assertThat(steady.moveShards(TWO).isDone()).isTrue();
            assertThat(publishCounted(other, version++)).isEqualTo(shards);
        }
        assertThat(steps).as("the last one").endsWith("finish_move");
        assertCounted(other, version);
        Handled handled = new Handled();
        try (Subscription member = other.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add)) {
            handled.awaitSize(published);
        }
        assertHandledInOrder(handled, 0, published);
    }

    /** The first shard knows of the move already, the others do not: so only they get the stream. */
    @Test
    void createStream_onSomeShardsWhileAMoveBegins_staysByOneSlotMap() {
        EventSql three = cluster.open(3);
        dieAfter(cluster.dataSources(), 1, THREE);
        assertThatThrownBy(() -> three.createStream(MoveCluster.stream(COUNTED).withKeyIndex()))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("keys are being moved between shards");
        assertThat(three.moveShards(THREE).isDone()).isTrue();
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        assertThat(new HashSet<>(publishCounted(three, 0).values())).doesNotContain(2);
        assertThat(new HashSet<>(publishCounted(cluster.open(3), 1).values())).doesNotContain(2);
        assertCounted(cluster.open(3), 2);
    }

    @Test
    void createStream_afterAMove_beginsWithTheSlotsAsTheyAreAndStaysThere() {
        EventSql three = cluster.open(3);
        EventSql other = cluster.open(3);
        three.moveShards(List.of(1, 2));
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        Map<String, Integer> shards = publishCounted(other, 0);
        assertThat(new HashSet<>(shards.values())).containsExactlyInAnyOrder(1, 2);
        assertThat(three.moveShards(TWO).staying()).containsExactly(COUNTED);
        assertThat(publishCounted(other, 1)).isEqualTo(shards);
        assertThat(publishCounted(cluster.open(3), 2)).isEqualTo(shards);
        assertThat(three.grow(COUNTED, 4).shards()).hasSize(3);
        assertThat(publishCounted(other, 3)).isEqualTo(shards);
        assertThat(three.moveShards(THREE).isDone()).isTrue();
        assertThat(publishCounted(other, 4)).isEqualTo(shards);
        assertCounted(cluster.open(3), 5);
        three.deleteStream(COUNTED, three.previewDeleteStream(COUNTED).confirmation());
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        assertThat(new HashSet<>(publishCounted(three, 0).values())).as("anew").containsExactlyInAnyOrder(0, 1, 2);
    }

    @Test
    void move_outboxesAndScheduledEvents_stayAndKeepOrder() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream("state").withCompaction(Compaction.DEFAULT));
        Handled handled = new Handled();
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase());
                EventSql relaying = EventSql.builder(cluster.dataSources())
                        .outbox(application)
                        .build();
                Subscription member = three.subscribe(ConsumerSpec.of("state", "c"), handled::add)) {
            Instant due = Instant.now().plusSeconds(3);
            for (int i = 0; i < 20; i++) {
                relaying.publisher().schedule("state", Event.ofText("due-" + i, Integer.toString(i)), due);
            }
            List<DataSource> from = new ArrayList<>(cluster.dataSources());
            from.add(application);
            for (int round = 0; round < 9; round++) {
                for (int j = 0; j < from.size(); j++) {
                    publishTransactional(relaying, from.get(j), "from" + j + "-", round);
                }
                if (round == 2) {
                    three.moveShards(List.of(1, 2));
                } else if (round == 5) {
                    three.moveShards(List.of(0, 2));
                }
            }
            handled.awaitSize(20 + 9 * 10 * from.size());
        }
        assertThat(handled.texts()).hasSize(20 + 9 * 10 * 4);
        Map<String, Integer> last = new TreeMap<>();
        for (StoredEvent event : handled.events()) {
            assertThat(event.position().shard()).isLessThan(2);
            Integer before = last.put(event.key(), Integer.parseInt(event.text()));
            assertThat(before == null || before < Integer.parseInt(event.text()))
                    .as("%s after %s of %s", event.text(), before, event.key())
                    .isTrue();
        }
    }

    private static void publishTransactional(EventSql eventSql, DataSource database, String prefix, int number)
            throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            for (int key = 0; key < 10; key++) {
                eventSql.outbox().publish(transaction, "state", Event.ofText(prefix + key, Integer.toString(number)));
            }
            transaction.commit();
        }
        eventSql.outbox().committed();
    }

    @Test
    void removeShard_streamsStayThere_isRejectedUntilTheyAreDeleted() {
        EventSql three = cluster.open(3);
        three.moveShards(THREE);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        Map<String, Integer> shards = publishCounted(three, 0);
        assertThat(shards).containsValue(2);
        assertThat(three.moveShards(TWO).isDone()).isTrue();
        assertThat(publishCounted(three, 1))
                .as("the shard accepts their events")
                .isEqualTo(shards);
        assertThatThrownBy(() -> three.removeShard(2))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining(
                        "cannot be removed yet: keys of streams that stay on their shards belong to it: " + COUNTED);
        three.deleteStream(COUNTED, three.previewDeleteStream(COUNTED).confirmation());
        three.removeShard(2);
        publish(cluster.open(2), STREAM, 0, KEYS);
    }

    /** The stream is created on the new shard, as each process does at its start, when keys have moved since it exists. */
    @Test
    void addShards_keysHaveMoved_newShardGetsWhatStays() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        Map<String, Integer> shards = publishCounted(three, 0);
        three.moveShards(THREE);
        try (HikariDataSource added = TestCluster.pool(TestCluster.newDatabaseWithTables());
                EventSql four = addShard(added)) {
            four.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
            Handled handled = new Handled();
            try (Subscription member = four.subscribe(ConsumerSpec.of(COUNTED, "c"), handled::add)) {
                assertThat(publishCounted(four, 1)).isEqualTo(shards);
                assertThat(four.moveShards(FOUR).isDone()).isTrue();
                assertThat(publishCounted(four, 2)).isEqualTo(shards);
                handled.awaitSize(3 * COUNTED_KEYS);
            }
            assertCounted(four, 3);
            assertThat(Sql.query(added, KEPT_VERSIONS))
                    .isEqualTo(Sql.query(cluster.dataSources().getFirst(), KEPT_VERSIONS))
                    .containsExactly("1");
            assertThat(four.grow(COUNTED, 4).shards()).hasSize(4);
            assertThat(publishCounted(four, 3)).isEqualTo(shards);
        }
    }

    /** It does not know where the keys of the stream are. */
    @Test
    void addShards_onlyTheNewShardIsAvailable_isNotAskedWhereKeysStay() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        publishCounted(three, 0);
        three.moveShards(THREE);
        List<SwitchableDataSource> former =
                cluster.dataSources().stream().map(SwitchableDataSource::new).toList();
        try (HikariDataSource added = TestCluster.pool(TestCluster.newDatabaseWithTables())) {
            try (EventSql four = addShard(added)) {
                four.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
            }
            List<DataSource> databases = new ArrayList<>(former);
            databases.add(added);
            try (EventSql four = MoveCluster.builder(databases).build()) {
                former.forEach(database -> database.setAvailable(false));
                assertThatThrownBy(() -> four.keyVersion(COUNTED, "key-0"))
                        .isInstanceOf(EventSqlException.class)
                        .hasMessageContaining("no shard is available");
                former.forEach(database -> database.setAvailable(true));
                assertCounted(four, 1);
            }
        }
    }

    /** The new shard got the former stream by a move, and is not known to the process that deletes it and creates it anew. */
    @Test
    void addShards_streamIsCreatedAnewWithoutTheNewShard_staysWhereItWasCreated() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        try (HikariDataSource added = TestCluster.pool(TestCluster.newDatabaseWithTables());
                EventSql four = addShard(added)) {
            assertThat(four.moveShards(THREE).isDone()).isTrue();
            publishCounted(four, 0);
            three.deleteStream(COUNTED, three.previewDeleteStream(COUNTED).confirmation());
            three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
            Map<String, Integer> shards = publishCounted(three, 0);
            assertThat(new HashSet<>(shards.values())).containsExactlyInAnyOrder(0, 1, 2);
            assertThat(four.moveShards(FOUR).isDone()).isTrue();
            assertThat(publishCounted(four, 1)).isEqualTo(shards);
            assertCounted(four, 2);
        }
    }

    private EventSql addShard(DataSource added) {
        List<DataSource> databases = new ArrayList<>(cluster.dataSources());
        databases.add(added);
        return MoveCluster.builder(databases).addShards().build();
    }

    /** A process knows the former streams on shard 0 only, and all slots. One of them becomes a stream that moves. */
    @Test
    void deleteStream_createdAnewAfterAMove_isPublishedByItsSlots() {
        EventSql three = cluster.open(3);
        EventSql other = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        three.createStream(MoveCluster.stream("state").withCompaction(Compaction.DEFAULT));
        assertThat(other.keyVersion(COUNTED, "key-0")).isZero();
        assertThat(other.latest("state", keyOfShard(three, 0))).isEmpty();
        String ofShard1 = keyOfShard(three, 1);
        Map<String, Integer> before = publishCounted(three, 0);
        recreate(three, MoveCluster.stream(COUNTED).withKeyIndex(), MoveCluster.stream("state"));
        other.previewDeleteStream(STREAM); // so it knows the slots of each shard

        List<String> moved =
                before.keySet().stream().filter(key -> before.get(key) == 1).toList();
        assertThat(moved).isNotEmpty();
        for (String key : moved) {
            assertThat(other.publisher()
                            .publish(COUNTED, Event.ofText(key, "0"), ExpectedVersion.of(0))
                            .shard())
                    .isEqualTo(2);
            assertThat(three.keyVersion(COUNTED, key)).isEqualTo(1);
        }
        publish(other, STREAM, 0, KEYS);
        assertThat(other.publisher()
                        .publish("state", Event.ofText(ofShard1, "0"))
                        .shard())
                .isEqualTo(2);
    }

    /** The deleting process has died after the first shard. Keys move before the deletion is repeated. */
    @Test
    void deleteStream_interruptedAndKeysMove_isCompletedAfterTheMove() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        publishCounted(three, 0);
        Sql.execute(cluster.dataSources().getFirst(), "SELECT eventsql.begin_delete_stream_v1('" + COUNTED + "')");
        assertThat(three.moveShards(List.of(1, 2)).isDone()).isTrue();
        assertThat(three.moveShards(THREE).isDone()).isTrue();
        three.deleteStream(COUNTED, three.previewDeleteStream(COUNTED).confirmation());
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        assertThat(new HashSet<>(publishCounted(three, 0).values())).containsExactlyInAnyOrder(0, 1, 2);
        assertThat(three.moveShards(TWO).isDone()).isTrue();
        assertCounted(cluster.open(3), 1);
    }

    private static String keyOfShard(EventSql eventSql, int shard) {
        return IntStream.range(0, KEYS)
                .mapToObj(i -> "key-" + i)
                .filter(key -> eventSql.publisher()
                                .publish(STREAM, Event.ofText(key, "0"))
                                .shard()
                        == shard)
                .findFirst()
                .orElseThrow();
    }

    /** Deletes streams, moves all keys of shard 1 to shard 2, and creates the streams anew. */
    private static void recreate(EventSql eventSql, StreamSpec... streams) {
        for (StreamSpec stream : streams) {
            MoveCluster.delete(eventSql, stream.name());
        }
        assertThat(eventSql.moveShards(List.of(0, 2)).isDone()).isTrue();
        for (StreamSpec stream : streams) {
            eventSql.createStream(stream);
        }
    }

    /**
     * The process knows the slots, and of the stream what it has read in the open transaction. By the slots of the cluster the key
     * would belong to the shard that is unavailable: the call would wait there, and later ones overtake it.
     */
    @Test
    void publish_afterAnOutboxHasReadTheStream_isRoutedByItsSlots() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream("state").withCompaction(Compaction.DEFAULT));
        String ofShard1 = keyOfShard(three, 1);
        assertThat(three.moveShards(List.of(0, 2)).isDone()).isTrue();
        List<DataSource> databases = cluster.dataSources();
        SwitchableDataSource last = new SwitchableDataSource(databases.getLast());
        EventSql other = cluster.open(List.of(databases.get(0), databases.get(1), last));
        last.setAvailable(false);
        try (Connection transaction = databases.getFirst().getConnection()) {
            transaction.setAutoCommit(false);
            other.outbox().publish(transaction, "state", Event.ofText("other", "0"));
            assertThat(other.publisher()
                            .publish("state", Event.ofText(ofShard1, "0"))
                            .shard())
                    .isEqualTo(1);
            transaction.rollback();
        } finally {
            last.setAvailable(true);
        }
    }

    /** Such a process reads the newest map of a stream, and moves by functions that do not keep streams. */
    @Test
    void processOfTheFormerRelease_isRejected() throws Exception {
        EventSql three = cluster.open(3);
        three.createStream(MoveCluster.stream(COUNTED).withKeyIndex());
        publishCounted(three, 0);
        DataSource first = cluster.dataSources().getFirst();
        assertState("ES028", first, "SELECT eventsql.decide_move_v1(2, slot_map, false) FROM eventsql.shard");
        dieAfter(cluster.dataSources(), STEPS_BEFORE_CLOSING, THREE);
        assertState("ES028", first, "SELECT eventsql.begin_closing_v1(2, attempt) FROM eventsql.shard_move");
        three.moveShards(THREE);
        for (DataSource database : cluster.dataSources()) {
            assertThat(Sql.queryLong(
                            database,
                            "SELECT count(*) FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)"
                                    + " WHERE s.name = 'counted' AND p.map_version = coalesce((SELECT max(m.map_version)"
                                    + " FROM eventsql.stream_map m WHERE m.stream_id = s.stream_id), p.map_version)"))
                    .isZero();
        }
        assertState(
                "ES001",
                first,
                "SELECT eventsql.publish_counted_v1(cluster_id, 'counted', 0, '{0}', '{0}', '{k}', '{x}', '{NULL}', NULL)"
                        + " FROM eventsql.shard");
        publishCounted(three, 1);
        assertCounted(three, 2);
    }

    private static void assertState(String state, DataSource database, String statement) {
        Throwable rejection = catchThrowable(() -> Sql.execute(database, statement));
        assertThat(rejection)
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(state));
    }
}
