package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The identities of databases: which are accepted, rejected and assigned. The seed of the competition test is printed
 * on failure and set by {@code -Deventsql.test.seed}; {@code -Deventsql.test.newClusters} makes it longer (2 new
 * clusters by default).
 */
@Timeout(120)
class ShardIdentityIT {
    private static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(2);
    private static final Settings QUICK =
            Settings.builder().publishTimeout(Duration.ofMillis(1_500)).build();

    /** A cluster of three shards, which has {@link #STREAM}, and an instance over it. */
    private static TestCluster known;

    private static EventSql complete;
    /** A cluster of two shards without streams. */
    private static TestCluster other;
    /** A database that belongs to no cluster. */
    private static TestCluster fresh;

    private final List<AutoCloseable> opened = new ArrayList<>();

    @BeforeAll
    static void createClusters() {
        known = TestCluster.ofShards(3);
        complete = known.open();
        complete.createStream(STREAM);
        other = TestCluster.ofShards(2);
        other.open().close();
        fresh = TestCluster.ofShards(1);
    }

    @AfterAll
    static void dropClusters() {
        known.close();
        other.close();
        fresh.close();
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable one : opened.reversed()) {
            one.close();
        }
    }

    private TestCluster databases(int count) {
        TestCluster cluster = TestCluster.ofShards(count);
        opened.add(cluster);
        return cluster;
    }

    private EventSql open(List<? extends DataSource> dataSources) {
        EventSql eventSql = EventSql.builder(dataSources).settings(QUICK).build();
        opened.add(eventSql);
        return eventSql;
    }

    private static List<DataSource> byNumber(EventSql eventSql) {
        return eventSql.shards().stream().map(ShardInfo::dataSource).toList();
    }

    private static String keyOf(int shard, int shards) {
        return TestCluster.keysOfShard(shard, shards, "key").findFirst().orElseThrow();
    }

    private static List<SwitchableDataSource> switchable(TestCluster cluster) {
        return cluster.dataSources().stream().map(SwitchableDataSource::new).toList();
    }

    private static String clusterId(DataSource dataSource) throws SQLException {
        return Sql.query(dataSource, "SELECT cluster_id FROM eventsql.shard").getFirst();
    }

    private static DataSource freshDatabase() {
        return fresh.dataSources().getFirst();
    }

    private static void assertStaysFresh(DataSource dataSource) throws SQLException {
        assertThat(Sql.queryLong(dataSource, "SELECT count(*) FROM eventsql.shard"))
                .isZero();
    }

    private static void assertRefused(Runnable open, String... inMessage) {
        assertThatExceptionOfType(ShardIdentityException.class)
                .isThrownBy(open::run)
                .satisfies(e -> assertThat(e.getMessage()).contains(inMessage));
    }

    @Test
    void open_knownClusterInAnyOrder_databasesKeepTheirNumbers() {
        List<DataSource> databases = known.dataSources();
        assertThat(byNumber(complete)).as("given in this order").isEqualTo(databases);
        for (List<Integer> order : List.of(List.of(2, 1, 0), List.of(1, 2, 0), List.of(0, 2, 1))) {
            EventSql eventSql = open(order.stream().map(databases::get).toList());
            assertThat(byNumber(eventSql)).isEqualTo(databases);
            assertThat(eventSql.shards().stream().map(ShardInfo::name)).containsExactly("shard0", "shard1", "shard2");
        }
    }

    @Test
    void open_sameDatabaseTwice_isRejected() throws SQLException {
        for (DataSource one : List.of(freshDatabase(), other.dataSources().getFirst())) {
            assertRefused(() -> open(List.of(one, one)), "same database");
            DataSource samePlace = new SwitchableDataSource(one);
            assertRefused(() -> open(List.of(one, samePlace)), "same database");
        }
        assertStaysFresh(freshDatabase());
    }

    @Test
    void open_databaseOfAnotherCluster_isRejected() throws SQLException {
        List<DataSource> a = known.dataSources();
        List<DataSource> b = other.dataSources();
        assertRefused(() -> open(List.of(a.get(0), b.get(1))), clusterId(a.get(0)), clusterId(b.get(1)));
        assertRefused(() -> open(List.of(b.get(0), a.get(0))), clusterId(a.get(0)), clusterId(b.get(0)));
    }

    @Test
    void open_tooFewDatabases_isRejected() throws SQLException {
        List<DataSource> databases = known.dataSources();
        assertRefused(() -> open(databases.subList(0, 2)), clusterId(databases.get(0)), "has 3 shards", "2 databases");
        assertRefused(() -> open(databases.subList(2, 3)), "has 3 shards", "1 databases");
    }

    @Test
    void open_freshDatabaseNextToExistingCluster_isRejectedAndStaysFresh() throws SQLException {
        List<DataSource> databases = other.dataSources();
        assertRefused(
                () -> open(List.of(databases.get(0), databases.get(1), freshDatabase())),
                clusterId(databases.get(0)),
                "2 shards already");
        assertStaysFresh(freshDatabase());
        assertThat(byNumber(open(databases))).isEqualTo(databases);
    }

    @Test
    void open_freshDatabaseInPlaceOfAShardInUse_isRejectedAndStaysFresh() throws SQLException {
        List<DataSource> databases = known.dataSources();
        for (int replaced = 0; replaced < 3; replaced++) {
            List<DataSource> given = new ArrayList<>(databases);
            given.set(replaced, freshDatabase());
            assertRefused(() -> open(given), clusterId(databases.get(0)), "in use");
        }
        assertStaysFresh(freshDatabase());
    }

    /** Shown before the fix: both ran side by side, and each of s1 and s2 believed to be the other half. */
    @Test
    void open_overlappingSetsBeforeTheFirstStream_secondIsRejectedAndStaysFresh() throws SQLException {
        List<DataSource> databases = databases(3).dataSources();
        open(databases.subList(0, 2));
        List<DataSource> overlapping = List.of(databases.get(0), databases.get(2));
        assertRefused(() -> open(overlapping), clusterId(databases.get(0)), "has no identity", "none of the databases");
        assertStaysFresh(databases.get(2));
        assertRefused(() -> open(overlapping.reversed()), clusterId(databases.get(0)), "none of the databases");
        assertThat(byNumber(open(databases.subList(0, 2)))).isEqualTo(databases.subList(0, 2));
    }

    @Test
    void open_overlappingSetsAtTheSameMoment_oneClusterIsCreated() throws Exception {
        for (int round = 0; round < 3; round++) {
            List<DataSource> databases = databases(3).dataSources();
            CountDownLatch start = new CountDownLatch(1);
            List<Future<List<DataSource>>> results = new ArrayList<>();
            try (ExecutorService executor = Executors.newCachedThreadPool()) {
                for (int second = 1; second <= 2; second++) {
                    List<DataSource> given = List.of(databases.get(0), databases.get(second));
                    results.add(executor.submit(() -> {
                        start.await();
                        try (EventSql eventSql = EventSql.builder(given).build()) {
                            return byNumber(eventSql);
                        } catch (ShardIdentityException e) {
                            return List.of();
                        }
                    }));
                }
                start.countDown();
            }
            List<Integer> shards = new ArrayList<>();
            for (Future<List<DataSource>> result : results) {
                shards.add(result.get().size());
            }
            assertThat(shards).as("round %d", round).containsExactlyInAnyOrder(0, 2);
            assertThat(Sql.queryLong(databases.get(0), "SELECT count(*) FROM eventsql.shard")
                            + Sql.queryLong(databases.get(1), "SELECT count(*) FROM eventsql.shard")
                            + Sql.queryLong(databases.get(2), "SELECT count(*) FROM eventsql.shard"))
                    .as("recorded identities in round %d", round)
                    .isEqualTo(2);
        }
    }

    @Test
    void open_oneDatabaseBecomesSeveral_isRejectedWithTheRemedy() throws SQLException {
        DataSource one = databases(1).dataSources().getFirst();
        List<DataSource> databases = List.of(one, freshDatabase());
        open(databases.subList(0, 1));
        assertRefused(
                () -> open(databases), clusterId(databases.get(0)), "1 shards already", "EventSqlBuilder.addShards()");
        assertStaysFresh(freshDatabase());
    }

    @Test
    void open_shardWasRestored_isStillTheSameShard() throws SQLException {
        List<DataSource> databases = databases(2).dataSources();
        open(databases).close();
        LogicalBackup.take(databases.get(1)).restore(databases.get(1));
        assertThat(byNumber(open(databases))).isEqualTo(databases);
    }

    @Test
    void open_copyOfAShard_isRejected() throws SQLException {
        List<DataSource> databases = other.dataSources();
        Sql.execute(
                databases.get(1),
                "UPDATE eventsql.shard SET shard_number = 0, shard_name = 'shard0'"); // as a restored backup says
        try {
            assertRefused(() -> open(databases), "shard0", "copy");
        } finally {
            Sql.execute(databases.get(1), "UPDATE eventsql.shard SET shard_number = 1, shard_name = 'shard1'");
        }
    }

    /** Shown before the fix: only a debug line said it, and calls failed because the shard "has not been reached". */
    @Test
    void open_lateShardLacksAFileOfTheSchema_isNamedOnceInTheLogAndByCalls() throws SQLException {
        List<DataSource> databases = databases(2).dataSources();
        open(databases).createStream(STREAM);
        String file = "V42__erased_tombstones.sql";
        Sql.execute(databases.get(1), "UPDATE eventsql.schema_version SET version = -42 WHERE version = 42");
        SwitchableDataSource late = new SwitchableDataSource(databases.get(1));
        late.setAvailable(false);
        Settings settings = Settings.builder()
                .publishTimeout(Duration.ofSeconds(3))
                .migrateSchema(false)
                .build();
        try (CapturedLog log = CapturedLog.of("shard");
                EventSql eventSql = EventSql.builder(List.of(databases.get(0), late))
                        .settings(settings)
                        .build()) {
            assertThat(log.lines("Could not open")).hasSize(1);
            late.setAvailable(true);
            await().atMost(Duration.ofSeconds(60)).until(() -> !log.lines(file).isEmpty());
            Event event = Event.ofText(keyOf(1, 2), "x");
            assertThatExceptionOfType(EventNotStoredException.class)
                    .isThrownBy(() -> eventSql.publisher().publish(STREAM.name(), event))
                    .satisfies(e -> assertThat(e)
                            .hasStackTraceContaining(file)
                            .hasStackTraceContaining("settings.migrateSchema is off"));
            assertThat(log.lines(file)).singleElement().asString().startsWith("ERROR Could not open database 2 of 2");

            Sql.execute(databases.get(1), "UPDATE eventsql.schema_version SET version = 42 WHERE version = -42");
            await().atMost(Duration.ofSeconds(60)).until(() -> eventSql.shards().size() == 2);
            assertThat(eventSql.publisher().publish(STREAM.name(), event).shard())
                    .isEqualTo(1);
        }
    }

    @Test
    void open_otherSlotMap_isRejected() throws SQLException {
        List<DataSource> databases = other.dataSources();
        Sql.execute(databases.get(1), "UPDATE eventsql.shard SET map_version = 2");
        try {
            assertRefused(() -> open(databases), "map version 2", "map version 1");
        } finally {
            Sql.execute(databases.get(1), "UPDATE eventsql.shard SET map_version = 1");
        }
    }

    @Test
    void open_creationWasInterrupted_isCompleted() throws SQLException {
        List<DataSource> databases = other.dataSources();
        for (int missing = 0; missing < 2; missing++) {
            String clusterId = clusterId(databases.get(1 - missing));
            Sql.execute(databases.get(missing), "DELETE FROM eventsql.shard");
            assertThat(byNumber(open(databases))).isEqualTo(databases);
            assertThat(clusterId(databases.get(missing))).isEqualTo(clusterId);
        }
    }

    /**
     * Goal: processes that start at the same moment, given the same new databases in different orders, create one
     * cluster. Method: threads wait at a latch, each with an order of its own, then open; all must see the same
     * numbers.
     */
    @Test
    void open_manyAtOnceInDifferentOrders_createOneCluster() throws Exception {
        long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
        Random random = new Random(seed);
        for (int round = 0; round < Integer.getInteger("eventsql.test.newClusters", 2); round++) {
            List<DataSource> databases = databases(3).dataSources();
            CountDownLatch start = new CountDownLatch(1);
            List<Future<List<DataSource>>> results = new ArrayList<>();
            try (ExecutorService executor = Executors.newCachedThreadPool()) {
                for (int process = 0; process < 5; process++) {
                    List<DataSource> order = new ArrayList<>(databases);
                    Collections.shuffle(order, random);
                    results.add(executor.submit(() -> {
                        start.await();
                        try (EventSql eventSql = EventSql.builder(order).build()) {
                            eventSql.createStream(STREAM);
                            return byNumber(eventSql);
                        }
                    }));
                }
                start.countDown();
                List<DataSource> first = results.getFirst().get(120, TimeUnit.SECONDS);
                assertThat(first).containsExactlyInAnyOrderElementsOf(databases);
                for (Future<List<DataSource>> result : results) {
                    assertThat(result.get(120, TimeUnit.SECONDS))
                            .as("seed %d, round %d", seed, round)
                            .isEqualTo(first);
                }
            }
            assertThat(clusterId(databases.get(0)))
                    .isEqualTo(clusterId(databases.get(1)))
                    .isEqualTo(clusterId(databases.get(2)));
        }
    }

    @Test
    void open_newClusterWithUnavailableDatabase_failsAndRecordsNothing() throws SQLException {
        TestCluster cluster = databases(2);
        List<SwitchableDataSource> databases = switchable(cluster);
        databases.get(1).setAvailable(false);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> open(databases))
                .withMessageContaining("1 of 2 are")
                .withMessageContaining("new cluster");
        assertStaysFresh(cluster.dataSources().getFirst());
        databases.get(1).setAvailable(true);
        assertThat(byNumber(open(databases))).isEqualTo(databases);
    }

    @Test
    void open_allDatabasesUnavailable_failsWithTheReason() {
        List<SwitchableDataSource> databases = switchable(other);
        databases.forEach(database -> database.setAvailable(false));
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> open(databases))
                .withMessageContaining("2 databases")
                .withMessageContaining("made unavailable by the test");
    }

    @Test
    void open_oneOfThreeUnavailable_othersWorkAndItJoinsLater() {
        String stream = TestStreams.newName();
        complete.createStream(StreamSpec.of(stream).withPartitions(2));
        List<SwitchableDataSource> databases = switchable(known);
        databases.get(1).setAvailable(false);

        EventSql eventSql = open(databases);
        assertThat(eventSql.shards().stream().map(ShardInfo::number)).containsExactly(0, 2);
        EventPublisher publisher = eventSql.publisher();
        Handled handled = new Handled();
        opened.add(eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add));
        for (int shard : new int[] {0, 2}) {
            assertThat(publisher
                            .publish(stream, Event.ofText(keyOf(shard, 3), "x"))
                            .shard())
                    .isEqualTo(shard);
        }
        for (int i = 0; i < 20; i++) {
            assertThat(publisher.publish(stream, Event.ofText("no key")).shard())
                    .isIn(0, 2);
        }
        handled.awaitSize(22);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> publisher.publish(stream, Event.ofText(keyOf(1, 3), "x")))
                .withMessageContaining(stream);
        assertThatExceptionOfType(PartialPublishException.class)
                .isThrownBy(() -> publisher.publishAll(
                        stream,
                        IntStream.range(0, 3)
                                .mapToObj(shard -> Event.ofText(keyOf(shard, 3), "y"))
                                .toList()))
                .satisfies(e -> assertThat(e.outcomes())
                        .extracting(PartialPublishException.Outcome::isStored)
                        .containsExactly(true, false, true));
        StreamSpec added = StreamSpec.of(TestStreams.newName()).withPartitions(2);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> eventSql.createStream(added))
                .withMessageContaining(added.name())
                .withMessageContaining("shard1");
        handled.awaitSize(24);

        databases.get(1).setAvailable(true);
        await().until(() -> eventSql.shards().size() == 3);
        assertThat(byNumber(eventSql)).isEqualTo(databases);
        assertThat(publisher.publish(stream, Event.ofText(keyOf(1, 3), "z")).shard())
                .isEqualTo(1);
        handled.awaitSize(25).assertOnceAndInOrder();
        eventSql.createStream(added);
        await().until(() -> publisher.publish(stream, Event.ofText("no key")).shard() == 1);
    }

    @Test
    void open_lateShardLacksTheStream_getsItWhenItJoins() throws SQLException {
        TestCluster cluster = databases(2);
        open(cluster.dataSources()).createStream(STREAM);
        // Created by a process that died before it reached the second shard.
        Sql.execute(
                cluster.dataSources().get(1),
                "DROP TABLE eventsql.events_orders CASCADE",
                "DELETE FROM eventsql.producer_batch",
                "DELETE FROM eventsql.stream");
        EventSql eventSql = open(cluster.dataSources());
        Handled handled = new Handled();
        opened.add(eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add));
        for (int shard = 0; shard < 2; shard++) {
            assertThat(eventSql.publisher()
                            .publish("orders", Event.ofText(keyOf(shard, 2), "x"))
                            .shard())
                    .isEqualTo(shard);
        }
        handled.awaitSize(2);
    }

    @Test
    void open_lateDatabaseOfAnotherCluster_isRejected() {
        SwitchableDataSource wrong =
                new SwitchableDataSource(other.dataSources().get(1));
        wrong.setAvailable(false);
        List<DataSource> databases = known.dataSources();
        EventSql eventSql = open(List.of(databases.get(0), wrong, databases.get(2)));
        wrong.setAvailable(true);
        // Opening is retried every second.
        await().during(Duration.ofMillis(1_500)).until(() -> eventSql.shards().size() == 2);
    }

    @Test
    void subscribe_closedBeforeALateShardJoins_takesNothingThere() throws Exception {
        String stream = TestStreams.newName();
        complete.createStream(StreamSpec.of(stream).withPartitions(2));
        List<SwitchableDataSource> databases = switchable(known);
        databases.get(1).setAvailable(false);
        EventSql eventSql = open(databases);
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), event -> {}).close();
        opened.add(complete.subscribe(ConsumerSpec.of(stream, "c"), event -> {}));
        await().until(() -> epochs(stream).stream().allMatch(epoch -> epoch > 0)); // it holds all partitions
        List<Long> epochs = epochs(stream);
        databases.get(1).setAvailable(true);
        await().until(() -> eventSql.shards().size() == 3);
        // Joining is retried every second.
        await().during(Duration.ofMillis(1_500)).until(() -> epochs(stream).equals(epochs));
    }

    private static List<Long> epochs(String stream) {
        return complete.positions(stream, "c").stream()
                .map(ConsumerPosition::epoch)
                .toList();
    }

    @Test
    void preferredShard_healthy_receivesAllEventsWithoutKeys() {
        DataSource preferred = known.dataSources().get(1);
        EventSql eventSql =
                EventSql.builder(known.dataSources()).preferredShard(preferred).build();
        opened.add(eventSql);
        List<Event> events = IntStream.range(0, 10)
                .mapToObj(i -> Event.ofText("no key " + i))
                .toList();
        for (int i = 0; i < 10; i++) {
            assertThat(eventSql.publisher()
                            .publish("orders", Event.ofText("no key"))
                            .shard())
                    .isEqualTo(1);
            assertThat(eventSql.publisher().publishAll("orders", events)).allMatch(p -> p.shard() == 1);
        }
        for (int shard = 0; shard < 3; shard++) {
            assertThat(eventSql.publisher()
                            .publish("orders", Event.ofText(keyOf(shard, 3), "x"))
                            .shard())
                    .isEqualTo(shard);
        }
    }

    @Test
    void preferredShard_unavailableAtStart_isPreferredOnceItJoins() {
        List<SwitchableDataSource> databases = switchable(known);
        databases.get(1).setAvailable(false);
        EventSql eventSql = EventSql.builder(databases)
                .settings(QUICK)
                .preferredShard(databases.get(1))
                .build();
        opened.add(eventSql);
        assertThat(eventSql.publisher().publish("orders", Event.ofText("x")).shard())
                .isNotEqualTo(1);
        databases.get(1).setAvailable(true);
        await().until(() -> eventSql.shards().size() == 3);
        for (int i = 0; i < 10; i++) {
            assertThat(eventSql.publisher().publish("orders", Event.ofText("x")).shard())
                    .isEqualTo(1);
        }
    }

    @Test
    void preferredShard_noneOfTheDataSources_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> EventSql.builder(known.dataSources()).preferredShard(freshDatabase()))
                .withMessageStartingWith("preferredShard ");
    }

    @Test
    void builder_noDataSourceOrTooMany_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> EventSql.builder(List.of()))
                .withMessageStartingWith("dataSources must be between 1 and 1024");
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> EventSql.builder(Collections.nCopies(1_025, freshDatabase())))
                .withMessageContaining("but is 1025");
    }
}
