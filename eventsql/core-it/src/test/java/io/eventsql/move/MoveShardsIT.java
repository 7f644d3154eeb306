package io.eventsql.move;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.PartitionState;
import io.eventsql.ScheduleId;
import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.ShardMove;
import io.eventsql.ShardMove.State;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: shards join and leave while streams are used; nothing is lost or stored twice, and every consumer handles the events of each
 * key in order. Each test has databases of its own, because moves change the whole cluster.
 */
@Timeout(180)
class MoveShardsIT {
    private static final String STREAM = "moving";
    private static final int PARTITIONS = 2;
    private static final int KEYS = 60;
    /** After every 50 events: many pages are published during a move, and the processors are left to the move. */
    private static final long LOAD_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private TestCluster cluster;
    private final List<EventSql> opened = new ArrayList<>();

    @AfterEach
    void close() {
        opened.forEach(EventSql::close);
        cluster.close();
    }

    /** Creates the databases of a test. */
    private void createDatabases(int number) {
        cluster = TestCluster.ofShards(number);
    }

    /** Opens an instance over the first databases. */
    private EventSql open(int databases) {
        return open(databases, false);
    }

    private EventSql open(int databases, boolean addShards) {
        var builder = EventSql.builder(cluster.dataSources().subList(0, databases))
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofSeconds(20))
                        .lease(Duration.ofSeconds(10))
                        .heartbeat(Duration.ofMillis(300))
                        .build());
        EventSql eventSql = (addShards ? builder.addShards() : builder).build();
        opened.add(eventSql);
        return eventSql;
    }

    private static StreamSpec stream() {
        return TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000);
    }

    /**
     * Creates the databases of a test and the cluster over the first of them, with the stream, and closes the instance: it would have
     * the relays' leases.
     */
    private void createCluster(int databases, int allDatabases) {
        createDatabases(allDatabases);
        EventSql eventSql = open(databases);
        eventSql.createStream(stream());
        eventSql.close();
    }

    private static ConsumerSpec consumer(String name) {
        return ConsumerSpec.of(STREAM, name);
    }

    private static void publish(EventSql eventSql, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("key-" + i % KEYS, Integer.toString(i)))
                                .toList());
    }

    private static void assertHandledInOrder(Handled handled, int from, int to) {
        // As sets, because AssertJ's own comparisons of collections compare each with each.
        assertThat(new TreeSet<>(handled.texts()))
                .isEqualTo(IntStream.range(from, to)
                        .mapToObj(Integer::toString)
                        .collect(Collectors.toCollection(TreeSet::new)));
        assertThat(handled.texts()).hasSize(to - from);
        assertOrderOfKeys(handled);
    }

    private static Map<Integer, Integer> slots(ShardMove move) {
        return move.shares().stream()
                .collect(Collectors.toMap(
                        ShardMove.ShardShare::shard, ShardMove.ShardShare::slots, Integer::sum, TreeMap::new));
    }

    @Test
    void move_shardsJoinAndLeave_keepsOrderOfKeys() {
        createDatabases(4);
        EventSql two = open(2);
        two.createStream(stream());
        publish(two, 0, 120);
        EventSql four = open(4, true);
        Handled handled = new Handled();
        Handled again = new Handled();
        AtomicBoolean replaying = new AtomicBoolean();
        try (Subscription member =
                four.subscribe(consumer("c"), event -> (replaying.get() ? again : handled).add(event))) {
            ShardMove preview = four.previewShards(List.of(0, 1, 2, 3));
            assertThat(preview.state()).isEqualTo(State.PENDING);
            assertThat(preview.movingSlots()).as("half of them").isEqualTo(512);
            assertThat(four.previewShards(List.of(0, 1, 2, 3))).isEqualTo(preview);

            ShardMove joined = four.moveShards(List.of(0, 1, 2, 3));
            assertThat(joined.isDone()).isTrue();
            assertThat(slots(joined)).containsExactlyInAnyOrderEntriesOf(Map.of(0, 256, 1, 256, 2, 256, 3, 256));
            publish(four, 120, 240);
            handled.awaitSize(240);
            assertThat(handled.events().stream().map(e -> e.position().shard())).contains(2, 3);

            ShardMove left = four.moveShards(List.of(0, 1, 3));
            assertThat(left.isDone()).isTrue();
            assertThat(left.mapVersion()).isEqualTo(3);
            publish(four, 240, 360);
            handled.awaitSize(360);
            assertThat(handled.events().subList(240, 360).stream()
                            .map(e -> e.position().shard())
                            .distinct())
                    .as("a shard that has left accepts no events")
                    .doesNotContain(2);

            replaying.set(true);
            four.consumer(STREAM, "c").seek(StartPosition.EARLIEST);
            again.awaitSize(360);
        }
        assertHandledInOrder(handled, 0, 360);
        assertHandledInOrder(again, 0, 360);
        Handled later = new Handled();
        try (Subscription member = open(4).subscribe(consumer("later"), later::add)) {
            later.awaitSize(360);
        }
        assertHandledInOrder(later, 0, 360);
    }

    @Test
    void move_whileOtherProcessesPublishAndConsume_theyFindOutByThemselves() throws Exception {
        createCluster(2, 3);
        EventSql three = open(3, true);
        EventSql other = open(3);
        AtomicInteger number = new AtomicInteger();
        AtomicBoolean stop = new AtomicBoolean();
        Handled handled = new Handled();
        try (Subscription member = other.subscribe(consumer("c"), handled::add);
                Subscription second = open(3).subscribe(consumer("c"), handled::add)) {
            CompletableFuture<Void> publishing = CompletableFuture.runAsync(() -> {
                List<CompletableFuture<?>> futures = new ArrayList<>();
                while (!stop.get()) {
                    int i = number.getAndIncrement();
                    futures.add(other.publisher()
                            .publishAsync(STREAM, Event.ofText("key-" + i % KEYS, Integer.toString(i))));
                    if (i % 50 == 0) {
                        futures.getLast().join();
                        LockSupport.parkNanos(LOAD_PAUSE_NANOS);
                    }
                }
                futures.forEach(CompletableFuture::join);
            });
            three.moveShards(List.of(0, 1, 2));
            int atFirst = number.get();
            await().until(() -> number.get() > atFirst + 200);
            three.moveShards(List.of(1, 2));
            int atSecond = number.get();
            await().until(() -> number.get() > atSecond + 200);
            stop.set(true);
            publishing.join();
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> handled.texts().stream().distinct().count() == number.get());
        }
        assertHandledInOrder(handled, 0, number.get());
    }

    @Test
    void move_slowConsumer_receiversWaitAndSaySo() throws Exception {
        createCluster(2, 3);
        EventSql three = open(3, true);
        publish(three, 0, 120);
        CountDownLatch begin = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(consumer("c"), event -> {
            begin.await();
            handled.add(event);
        })) {
            three.moveShards(List.of(0, 1, 2));
            publish(three, 120, 240);
            List<PartitionState> waiting = three.consumer(STREAM, "c").state().stream()
                    .filter(state -> state.shard() == 2)
                    .toList();
            assertThat(waiting).isNotEmpty().allSatisfy(state -> {
                assertThat(state.member()).isNull();
                assertThat(state.error()).contains("waits until the consumer has handled partition", "of shard shard");
            });
            begin.countDown();
            handled.awaitSize(240);
        }
        assertHandledInOrder(handled, 0, 240);
    }

    @Test
    void move_outboxesOfShardsAndOfAnotherDatabase_keepOrder() throws Exception {
        createCluster(2, 3);
        open(3, true).close();
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase());
                EventSql both = EventSql.builder(cluster.dataSources())
                        .outbox(application)
                        .build()) {
            List<DataSource> from = List.of(
                    application,
                    cluster.dataSources().get(0),
                    cluster.dataSources().get(2));
            Handled handled = new Handled();
            try (Subscription member = both.subscribe(consumer("c"), handled::add)) {
                for (int i = 0; i < 180; i += 20) {
                    for (int j = 0; j < from.size(); j++) {
                        publishTransactional(both, from.get(j), "from" + j + "-", i, i + 20);
                    }
                    if (i == 60) {
                        both.moveShards(List.of(0, 1, 2));
                    } else if (i == 120) {
                        both.moveShards(List.of(1, 2));
                    }
                }
                handled.awaitSize(540);
            }
            assertThat(handled.texts()).hasSize(540);
            assertOrderOfKeys(handled);
            assertThat(handled.events().stream().map(e -> e.position().shard())).contains(0, 1, 2);
            await().untilAsserted(() -> assertThat(cluster.sum("SELECT count(*) FROM eventsql.outbox_transfer"))
                    .isZero());
        }
    }

    /** The shard that gives keys away is unavailable to the relay while events wait for it, and closes its slots then. */
    @Test
    void move_eventsWaitInAnOutboxForAShardThatClosesTheirSlots_areAddressedAnew() throws Exception {
        createCluster(2, 3);
        EventSql three = open(3, true);
        Handled handled = new Handled();
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase())) {
            SwitchableDataSource giver =
                    new SwitchableDataSource(cluster.dataSources().get(0));
            List<DataSource> databases = new ArrayList<>(cluster.dataSources());
            databases.set(0, giver);
            try (EventSql relaying =
                            EventSql.builder(databases).outbox(application).build();
                    Subscription member = three.subscribe(consumer("c"), handled::add)) {
                publishTransactional(relaying, application, "key-", 0, 100);
                handled.awaitSize(100);
                giver.setAvailable(false);
                publishTransactional(relaying, application, "key-", 100, 300);
                await().until(() -> Sql.queryLong(application, "SELECT count(*) FROM eventsql.outbox_transfer") > 50);
                three.moveShards(List.of(1, 2));
                publishTransactional(relaying, application, "key-", 300, 400);
                giver.setAvailable(true);
                handled.awaitSize(400);
            }
        }
        assertThat(handled.texts()).hasSize(400);
        assertOrderOfKeys(handled);
    }

    private static void publishTransactional(EventSql from, DataSource database, String prefix, int first, int end)
            throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            for (int i = first; i < end; i++) {
                from.outbox().publish(transaction, STREAM, Event.ofText(prefix + i % 20, Integer.toString(i)));
            }
            transaction.commit();
        }
        from.outbox().committed();
    }

    private static void assertOrderOfKeys(Handled handled) {
        Map<String, Integer> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            int number = Integer.parseInt(event.text());
            Integer before = last.put(event.key(), number);
            assertThat(before == null || before < number)
                    .as("%s of %s after %s", number, event.key(), before)
                    .isTrue();
        }
    }

    /** A scheduled event waits on the shard where it was scheduled, and is stored where its key belongs when it is due. */
    @Test
    void move_scheduledEvents_areStoredOnTheNewShard() {
        createCluster(1, 2);
        EventSql two = open(2, true);
        Instant due = Instant.now().plusSeconds(3);
        for (int i = 0; i < 40; i++) {
            two.publisher().schedule(STREAM, Event.ofText("key-" + i, Integer.toString(i)), due);
        }
        two.moveShards(List.of(1));
        Handled handled = new Handled();
        try (Subscription member = two.subscribe(consumer("c"), handled::add)) {
            handled.awaitSize(40);
        }
        assertThat(handled.events())
                .hasSize(40)
                .allMatch(event -> event.position().shard() == 1);
    }

    @Test
    void anyCall_processWithoutTheNewDatabase_failsAndNamesIt() {
        createDatabases(3);
        EventSql two = open(2);
        two.createStream(stream());
        publish(two, 0, 100);
        EventSql three = open(3, true);
        publish(two, 100, 200);
        three.moveShards(List.of(0, 1, 2));
        List<String> failed = new ArrayList<>();
        for (int i = 200; i < 300; i++) {
            String text = Integer.toString(i);
            try {
                two.publisher().publish(STREAM, Event.ofText("key-" + i % KEYS, text));
            } catch (EventNotStoredException e) {
                assertThat(e).hasMessageContaining("shard2").hasMessageContaining("not among the data sources");
                failed.add(text);
            }
        }
        assertThat(failed).as("about a third").hasSizeBetween(5, 70);
        List<UUID> notScheduled = scheduleAndListFailed(two);
        assertThat(notScheduled).as("about a third").hasSizeBetween(1, 29);
        UUID scheduled = notScheduled.getFirst();
        three.publisher().schedule(STREAM, Event.ofText("v"), scheduled);
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(consumer("c"), handled::add)) {
            handled.awaitSize(300 - failed.size());
        }
        assertThat(handled.texts()).doesNotContainAnyElementsOf(failed);
        ConsumerControl control = two.consumer(STREAM, "c");
        ContinuousAggregate aggregate = two.startContinuousAggregate(
                ContinuousAggregateSpec.of("counts", STREAM).withMeasure("n", event -> 1));
        Map<String, ThrowingCallable> calls = Map.ofEntries(
                Map.entry("erase", () -> two.erase(ErasureSpec.of(STREAM, "key-1"))),
                Map.entry("seek", () -> control.seek(StartPosition.EARLIEST)),
                Map.entry("pause", control::pause),
                Map.entry("delete", control::delete),
                Map.entry("state", control::state),
                Map.entry("parkedEvents", () -> control.parkedEvents(10)),
                Map.entry("positions", () -> two.positions(STREAM, "c")),
                Map.entry("windows", () -> aggregate.windows(Instant.EPOCH, Instant.now(), 10)),
                Map.entry("rebuild", aggregate::rebuild),
                Map.entry("retentionPlan", () -> two.retentionPlan(STREAM)),
                Map.entry("scheduledEvents", () -> two.scheduledEvents(null, null, 10)),
                Map.entry("scheduleBacklogs", two::scheduleBacklogs),
                Map.entry("cancelScheduled", () -> two.cancelScheduled(scheduled)),
                Map.entry("clear", () -> two.previewClear(STREAM)),
                Map.entry("deleteStream", () -> two.previewDeleteStream(STREAM)),
                Map.entry("previewGrowth", () -> two.previewGrowth(STREAM, 20)),
                Map.entry("grow", () -> two.grow(STREAM, 20)),
                Map.entry("alter", () -> two.alterStream(stream())));
        calls.forEach((name, call) -> assertThatThrownBy(call)
                .as(name)
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("the database of shard2 is not among the data sources"));
        assertThat(three.cancelScheduled(scheduled)).isTrue();
        assertThat(two.consumers().unavailableShards())
                .hasEntrySatisfying("shard2", why -> assertThat(why).contains("not among the data sources"));
        assertThatThrownBy(() -> open(2))
                .isInstanceOf(ShardIdentityException.class)
                .hasMessageContaining("3 shards");
    }

    /** Where an event is scheduled follows from its id, not from a key. */
    private static List<UUID> scheduleAndListFailed(EventSql eventSql) {
        Instant due = Instant.now().plus(Duration.ofHours(1));
        List<UUID> failed = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            UUID id = ScheduleId.next(due);
            try {
                eventSql.publisher().schedule(STREAM, Event.ofText("v"), id);
            } catch (EventNotStoredException e) {
                assertThat(e).hasMessageContaining("shard2").hasMessageContaining("not among the data sources");
                failed.add(id);
            }
        }
        return failed;
    }

    @Test
    void open_addedShardWithoutSlots_needNotBeGivenUnlessKeysAreMoved() {
        createDatabases(3);
        EventSql two = open(2);
        two.createStream(stream());
        open(3, true);
        EventSql withoutIt = open(2);
        publish(withoutIt, 0, 50);
        assertThat(withoutIt.shards()).hasSize(2);
        assertThatThrownBy(() -> withoutIt.moveShards(List.of(0)))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("shard2 is missing");
    }

    @Test
    void cancel_beforeSlotsAreClosed_nothingHasMoved() throws Exception {
        createDatabases(3);
        EventSql two = open(2);
        two.createStream(stream());
        publish(two, 0, 100);
        EventSql three = open(3, true);
        // As if the process had died when it had decided.
        ShardMove preview = three.previewShards(List.of(0, 1, 2));
        Sql.execute(
                cluster.dataSources().get(0),
                "SELECT eventsql.decide_move_v2(2, '" + next(preview) + "'::smallint[], false)");
        assertThat(three.previewShards(List.of(0, 1, 2)).state()).isEqualTo(State.PREPARING);
        assertThatThrownBy(() -> three.moveShards(List.of(0, 1)))
                .hasMessageContaining("being moved to the shards [0, 1, 2]");
        three.cancelShardMove();
        assertThat(three.previewShards(List.of(0, 1, 2)).state()).isEqualTo(State.PENDING);
        publish(two, 100, 200);
        assertThat(three.moveShards(List.of(0, 1, 2)).isDone()).isTrue();
        three.cancelShardMove(); // nothing is left to cancel
    }

    private static String next(ShardMove preview) {
        int[] slotMap = IntStream.range(0, 1_024).map(slot -> slot % 2).toArray();
        preview.transfers().forEach(transfer -> transfer.slots().forEach(slot -> slotMap[slot] = transfer.to()));
        return IntStream.of(slotMap).mapToObj(Integer::toString).collect(Collectors.joining(",", "{", "}"));
    }
}
