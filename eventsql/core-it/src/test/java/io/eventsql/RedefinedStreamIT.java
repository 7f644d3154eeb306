package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a shard that does not have a stream gets it as the other one has it, never as a process remembers it: another process may
 * have deleted the stream and created it anew with other partitions. Method: that process reaches the first shard alone when it
 * creates the stream anew.
 */
@Timeout(120)
class RedefinedStreamIT {
    /** Generous, so that only a hang fails. */
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static final String CREATED_ANEW = "created anew with other partitions";

    private static TestCluster cluster;

    private final String stream = TestStreams.newName();
    private final String deadLetters = stream + ConsumerSpec.DEAD_LETTER_SUFFIX;

    @BeforeAll
    static void createDatabases() {
        cluster = TestCluster.ofShards(2);
    }

    @AfterAll
    static void dropDatabases() {
        cluster.close();
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    private static DataSource first() {
        return cluster.dataSources().get(0);
    }

    private static DataSource second() {
        return cluster.dataSources().get(1);
    }

    private StreamSpec former() {
        return TestStreams.of(stream).withPartitions(2).withSegmentSize(1_000);
    }

    /** Returns a key whose events go to a shard, after publishing events with this and other keys. */
    private String publishUntilShard(EventSql eventSql, int shard) {
        for (int i = 0; ; i++) {
            String key = "key-" + i;
            if (eventSql.publisher()
                            .publish(stream, Event.ofText(key, "before"))
                            .shard()
                    == shard) {
                return key;
            }
        }
    }

    private static void delete(String name) {
        try (EventSql other = EventSql.builder(cluster.dataSources()).build()) {
            other.deleteStream(name, other.previewDeleteStream(name).confirmation());
        }
    }

    private static void createAnewOnFirstShard(String name) {
        SwitchableDataSource second = new SwitchableDataSource(second());
        try (EventSql other = EventSql.builder(List.of(first(), second)).build()) {
            second.setAvailable(false);
            assertThatThrownBy(() -> other.createStream(TestStreams.of(name).withPartitions(3)))
                    .isInstanceOf(EventSqlException.class);
        }
    }

    private static List<String> partitions(DataSource shard, String name) throws SQLException {
        return Sql.query(shard, "SELECT partitions FROM eventsql.stream WHERE name = ?", name);
    }

    private List<String> values(DataSource shard) throws SQLException {
        return Sql.query(shard, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream);
    }

    @Test
    void publish_createdAnewOnFirstShard_callFailsAndLaterOnesAreStoredInTheNewOne() throws Exception {
        EventSql eventSql = cluster.open();
        eventSql.createStream(former());
        String key = publishUntilShard(eventSql, 1);
        delete(stream);
        createAnewOnFirstShard(stream);

        assertThatThrownBy(() -> eventSql.publisher().publish(stream, Event.ofText(key, "routed by the former one")))
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining(CREATED_ANEW);
        assertThat(partitions(second(), stream)).isEmpty();
        eventSql.publisher().publish(stream, Event.ofText(key, "after"));

        assertThat(partitions(second(), stream)).containsExactly("3");
        assertThat(values(second())).containsExactly("after");
    }

    /** The process remembers the stream, but has not used it on the second shard. */
    @Test
    void relay_createdAnewOnFirstShard_secondOneGetsTheNewStream() throws Exception {
        String firstKey;
        String secondKey;
        try (EventSql creator = EventSql.builder(cluster.dataSources()).build()) {
            creator.createStream(former());
            firstKey = publishUntilShard(creator, 0);
            secondKey = publishUntilShard(creator, 1);
        }
        EventSql eventSql = cluster.open();
        eventSql.publisher().publish(stream, Event.ofText(firstKey, "before"));
        delete(stream);
        createAnewOnFirstShard(stream);

        publishInTransaction(eventSql, first(), Event.ofText(secondKey, "after"));

        awaitNewStreamOnSecondShard();
        assertThat(Sql.query(first(), "SELECT error FROM eventsql.outbox_refused"))
                .isEmpty();
    }

    private void publishInTransaction(EventSql eventSql, DataSource outbox, Event event) throws SQLException {
        try (Connection transaction = outbox.getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, stream, event);
            transaction.commit();
        }
    }

    private void awaitNewStreamOnSecondShard() {
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(partitions(second(), stream)).containsExactly("3"));
        await().atMost(DEADLINE)
                .ignoreExceptions() // until its tables are there
                .untilAsserted(() -> assertThat(values(second())).containsExactly("after"));
    }

    /** The relay has moved events to the former stream, from the outbox of the other shard or of this one. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_hasUsedTheFormerStream_secondShardGetsTheNewOne(int shardOfOutbox) throws Exception {
        DataSource outbox = cluster.dataSources().get(shardOfOutbox);
        EventSql eventSql = cluster.open();
        eventSql.createStream(former());
        String key = publishUntilShard(eventSql, 1);
        publishInTransaction(eventSql, outbox, Event.ofText(key, "by the relay"));
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(values(second())).contains("by the relay"));
        delete(stream);
        createAnewOnFirstShard(stream);

        publishInTransaction(eventSql, outbox, Event.ofText(key, "after"));

        awaitNewStreamOnSecondShard();
        assertThat(Sql.query(outbox, "SELECT error FROM eventsql.outbox_refused"))
                .isEmpty();
    }

    @Test
    void deadLetter_createdAnewOnFirstShard_partitionStopsWithTheReason() throws Exception {
        EventSql eventSql = cluster.open();
        eventSql.createStream(former());
        String key = publishUntilShard(eventSql, 1);
        ConsumerSpec failing = ConsumerSpec.of(stream, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        eventSql.subscribe(failing, event -> {
            if (event.text().equals("bad")) {
                throw new IllegalStateException("cannot handle it");
            }
        });
        delete(deadLetters);
        createAnewOnFirstShard(deadLetters);

        EventPosition bad = eventSql.publisher().publish(stream, Event.ofText(key, "bad"));

        await().atMost(DEADLINE).until(() -> stoppedPartition(eventSql).isPresent());
        PartitionState stopped = stoppedPartition(eventSql).orElseThrow();
        assertThat(stopped.shard()).isEqualTo(1);
        assertThat(stopped.nextOffset()).isEqualTo(bad.offset());
        assertThat(stopped.error())
                .startsWith("the database refused the dead letter of offset " + bad.offset())
                .contains(CREATED_ANEW);
        assertThat(partitions(second(), deadLetters)).isEmpty();
    }

    private Optional<PartitionState> stoppedPartition(EventSql eventSql) {
        return eventSql.consumer(stream, "c").state().stream()
                .filter(partition -> partition.status() == PartitionState.Status.STOPPED)
                .findFirst();
    }

    /** The second shard is restored to a time before the stream, which was created anew on the first one in between. */
    @Test
    void restore_createdAnewOnFirstShard_memberWaitsUntilTheSecondOneHasIt() throws Exception {
        EventSql eventSql =
                cluster.open(settings -> settings.lease(Duration.ofSeconds(60)).heartbeat(Duration.ofMillis(500)));
        LogicalBackup backup = LogicalBackup.take(second());
        eventSql.createStream(former());
        String key = publishUntilShard(eventSql, 1);
        Handled handled = new Handled();
        eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
        eventSql.subscribe(ConsumerSpec.of(stream, "d"), event -> {});
        await().atMost(DEADLINE).until(() -> handled.positions().stream().anyMatch(position -> position.shard() == 1));
        Sql.execute(
                first(),
                "DELETE FROM eventsql.stream WHERE name = '" + stream + "'",
                "DROP TABLE " + TestStreams.table(stream) + " CASCADE");
        createAnewOnFirstShard(stream);

        try (CapturedLog log = CapturedLog.ofConsuming()) {
            backup.restore(second());
            for (String consumer : List.of("c", "d")) { // each says so
                await().atMost(DEADLINE)
                        .until(() ->
                                log
                                        .lines("Consumer " + consumer + " of stream " + stream + " cannot continue on")
                                        .stream()
                                        .anyMatch(line -> line.contains(CREATED_ANEW)));
            }
            assertThat(partitions(second(), stream)).isEmpty();

            eventSql.createStream(TestStreams.of(stream).withPartitions(3));
            eventSql.publisher().publish(stream, Event.ofText(key, "after"));
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(handled.texts()).contains("after"));
            for (String consumer : List.of("c", "d")) {
                await().atMost(DEADLINE)
                        .until(() -> log.lines("Consumer " + consumer + " of stream " + stream + " continues on")
                                        .size()
                                == 1);
            }
        }
    }

    /** Nothing is asked of the others for a shard that has the stream. */
    @Test
    void publish_firstShardIsUnavailable_secondOneStoresIt() throws Exception {
        SwitchableDataSource first = new SwitchableDataSource(first());
        try (EventSql eventSql = EventSql.builder(List.of(first, second())).build()) {
            eventSql.createStream(former());
            String key = publishUntilShard(eventSql, 1);
            first.setAvailable(false);
            assertThat(eventSql.publisher()
                            .publish(stream, Event.ofText(key, "after"))
                            .shard())
                    .isEqualTo(1);
        }
        assertThat(values(second())).contains("after");
    }
}
