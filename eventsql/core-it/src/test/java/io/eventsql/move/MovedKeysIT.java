package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.publish;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.PartitionState;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what reads, controls or changes streams after keys have moved does it right, or says why not. Method: the keys of streams with
 * events have moved from the first shard to the third one before the tests, each of which has a stream of its own.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class MovedKeysIT {
    private static final String ALTERED = "altered";
    private static final String SOUGHT = "sought";
    private static final String HELD = "held";
    private static final String LOST = "lost";
    private static final String CONSUMED_AGAIN = "consumed_again";

    private MoveCluster cluster;
    private EventSql outdated;
    private EventSql alsoOutdated;
    private EventSql three;

    @BeforeAll
    void move() {
        List<String> streams = List.of(ALTERED, SOUGHT, HELD, LOST, CONSUMED_AGAIN);
        cluster = new MoveCluster(3);
        cluster.createWith(2, streams.stream().map(MoveCluster::stream).toArray(StreamSpec[]::new));
        outdated = cluster.open(3);
        alsoOutdated = cluster.open(3);
        three = cluster.open(3);
        streams.forEach(stream -> publish(three, stream, 0, KEYS));
        three.moveShards(List.of(1, 2));
    }

    @AfterAll
    void close() {
        cluster.close();
    }

    /** A process that neither publishes nor consumes has not noticed the move. */
    @Test
    void readKeyLatestAndPublishExpected_processKnowsTheFormerSlotMap_usesTheOwner() throws Exception {
        three.createStream(MoveCluster.stream("indexed").withKeyIndex());
        three.createStream(MoveCluster.stream("compacted").withCompaction(Compaction.DEFAULT));
        publish(three, "indexed", 0, 2 * KEYS);
        publish(three, "compacted", 0, 2 * KEYS);
        for (int i = 0; i < 20; i++) {
            String key = "key-" + i;
            assertThat(outdated.keyVersion("indexed", key)).as(key).isEqualTo(2);
            assertThat(outdated.readKey("indexed", key).events())
                    .extracting(StoredEvent::text)
                    .containsExactly(Integer.toString(i), Integer.toString(i + KEYS));
            assertThat(outdated.latest("compacted", key))
                    .map(StoredEvent::text)
                    .isEqualTo(Optional.of(Integer.toString(i + KEYS)));
        }
        publishExpectedInTransactions();
    }

    private void publishExpectedInTransactions() throws SQLException {
        three.createStream(MoveCluster.stream("versioned").withKeyVersions());
        for (int i = 0; i < 10; i++) {
            String key = "key-" + i;
            int owner = three.publisher()
                    .publish("versioned", Event.ofText(key, "1"))
                    .shard();
            try (Connection transaction = cluster.dataSources().get(owner).getConnection()) {
                transaction.setAutoCommit(false);
                alsoOutdated.outbox().publish(transaction, "versioned", Event.ofText(key, "2"), ExpectedVersion.of(1));
                transaction.commit();
            }
        }
        for (int i = 0; i < 10; i++) {
            String key = "key-" + i;
            await().until(() -> three.keyVersion("versioned", key) == 2);
        }
    }

    @Test
    void alterStream_compactionAfterKeysHaveMoved_isRejected() {
        assertThatThrownBy(() -> three.alterStream(MoveCluster.stream(ALTERED).withCompaction(Compaction.DEFAULT)))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("have moved between shards");
    }

    /** A process of the previous release seeks without telling the receivers. */
    @Test
    void seek_receiversWereNotTold_isRejected() throws Exception {
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(ConsumerSpec.of(SOUGHT, "sought"), handled::add)) {
            handled.awaitSize(KEYS);
        }
        assertThatThrownBy(() -> Sql.execute(
                        cluster.dataSources().get(0),
                        "SELECT eventsql.seek_v1(eventsql.incarnation_v1(), consumer_id, 0, 0, NULL)"
                                + " FROM eventsql.consumer WHERE name = 'sought'"))
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("ES001"));
        three.consumer(SOUGHT, "sought").seek(StartPosition.EARLIEST);
    }

    /** With a savepoint before each statement, rows are written by subtransactions. The first shard has no slots. */
    @Test
    void seekAndCreateStream_driverSetsSavepoints_workAsWithoutThem() throws Exception {
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(ConsumerSpec.of(SOUGHT, "savepoints"), handled::add)) {
            handled.awaitSize(KEYS);
        }
        List<HikariDataSource> pools = new ArrayList<>();
        try {
            for (DataSource database : cluster.dataSources()) {
                pools.add(poolWithSavepoints(database));
            }
            try (EventSql saving = MoveCluster.builder(List.copyOf(pools)).build()) {
                saving.consumer(SOUGHT, "savepoints").seek(StartPosition.EARLIEST);
                saving.createStream(MoveCluster.stream("created"));
            }
        } finally {
            pools.forEach(HikariDataSource::close);
        }
        assertThat(three.consumer(SOUGHT, "savepoints").state().stream()
                        .mapToLong(PartitionState::lag)
                        .sum())
                .isEqualTo(KEYS);
        assertThat(Sql.query(
                        cluster.dataSources().getFirst(),
                        "SELECT DISTINCT p.map_version < 0 FROM eventsql.stream s"
                                + " JOIN eventsql.stream_partition p USING (stream_id) WHERE s.name = 'created'"))
                .as("closed")
                .containsExactly("t");
    }

    private static HikariDataSource poolWithSavepoints(DataSource database) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return Pools.pool(
                    TestCluster.server(),
                    connection.getMetaData().getURL(),
                    config -> config.addDataSourceProperty("autosave", "always"));
        }
    }

    /** Members report what they have handled while the seek is under way: nothing of a receiver may be handled before its giver's. */
    @Test
    void seek_giverAnswersSlowly_handlesInOrder() {
        try (MoveCluster own = new MoveCluster(3)) {
            own.create(2);
            EventSql process = own.open(3);
            publish(process, STREAM, 0, KEYS);
            process.moveShards(List.of(1, 2));
            publish(process, STREAM, KEYS, 2 * KEYS);
            process.moveShards(List.of(0, 1));
            publish(process, STREAM, 2 * KEYS, 3 * KEYS);
            List<DataSource> databases = new ArrayList<>(own.dataSources());
            SlowDataSource giver = new SlowDataSource(databases.get(2));
            databases.set(2, giver);
            EventSql seeking = own.open(databases);
            Queue<Handled> phases = new ConcurrentLinkedQueue<>(List.of(new Handled(), new Handled()));
            Handled once = phases.peek();
            try (Subscription member = process.subscribe(
                    ConsumerSpec.of(STREAM, "c"),
                    event -> requireNonNull(phases.peek()).add(event))) {
                once.awaitSize(3 * KEYS);
                awaitNothingToHandle(process);
                phases.remove();
                giver.isSlow = true;
                seeking.consumer(STREAM, "c").seek(StartPosition.EARLIEST);
                giver.isSlow = false;
                requireNonNull(phases.peek()).awaitSize(3 * KEYS);
                awaitNothingToHandle(process);
            }
            MoveCluster.assertHandledInOrder(once, 0, 3 * KEYS);
            MoveCluster.assertHandledInOrder(requireNonNull(phases.peek()), 0, 3 * KEYS);
        }
    }

    /** Receivers are held back for a seek that never comes. */
    @Test
    void seek_processDies_receiversContinue() {
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(ConsumerSpec.of(HELD, "c"), handled::add)) {
            handled.awaitSize(KEYS);
        }
        cluster.dieInSeek(3, HELD, "c");
        publish(three, HELD, KEYS, 2 * KEYS);
        try (Subscription member = three.subscribe(ConsumerSpec.of(HELD, "c"), handled::add)) {
            handled.awaitSize(2 * KEYS);
        }
        MoveCluster.assertHandledInOrder(handled, 0, 2 * KEYS);
    }

    /** As if the giver's database was restored to before many seeks, of which the receiver knows. */
    @Test
    void seek_giverHasLostMany_receiverContinues() throws Exception {
        Handled handled = new Handled();
        try (Subscription member = three.subscribe(ConsumerSpec.of(LOST, "lost"), handled::add)) {
            handled.awaitSize(KEYS);
        }
        Sql.execute(
                cluster.dataSources().get(2),
                "SELECT eventsql.hold_receivers_v2(consumer_id, '{0}', '{1000}', 0)"
                        + " FROM eventsql.consumer WHERE name = 'lost'");
        publish(three, LOST, KEYS, 2 * KEYS);
        try (CapturedLog log = CapturedLog.ofConsuming();
                Subscription member = three.subscribe(ConsumerSpec.of(LOST, "lost"), handled::add)) {
            handled.awaitSize(2 * KEYS);
            assertThat(log.lines("of stream lost has not completed")).hasSize(1);
        }
        MoveCluster.assertHandledInOrder(handled, 0, 2 * KEYS);
    }

    private static void awaitNothingToHandle(EventSql process) {
        await().atMost(Duration.ofSeconds(60))
                .until(() ->
                        process.consumer(STREAM, "c").state().stream().allMatch(partition -> partition.lag() == 0));
    }

    /** A database that answers more slowly than members send heartbeats. */
    private static final class SlowDataSource extends DelegatingDataSource {
        private volatile boolean isSlow;

        SlowDataSource(DataSource delegate) {
            super(delegate);
        }

        @Override
        public Connection getConnection() throws SQLException {
            if (isSlow) {
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(300));
            }
            return super.getConnection();
        }
    }

    /** A consumer that is created anew handles what a former shard has before what its receivers have. */
    @Test
    void delete_consumerIsCreatedAnew_handlesInOrder() {
        publish(three, CONSUMED_AGAIN, KEYS, 2 * KEYS);
        for (int time = 0; time < 2; time++) {
            Handled handled = new Handled();
            try (Subscription member = three.subscribe(ConsumerSpec.of(CONSUMED_AGAIN, "again"), handled::add)) {
                handled.awaitSize(2 * KEYS);
            }
            MoveCluster.assertHandledInOrder(handled, 0, 2 * KEYS);
            three.consumer(CONSUMED_AGAIN, "again").delete();
        }
    }

    /** Given all databases that were in use before, but not the one that keys have moved to. */
    @Test
    void open_withoutTheShardThatHasReceivedKeys_isRejected() {
        assertThatThrownBy(() -> cluster.open(2)).hasMessageContaining("all shards that have events");
    }
}
