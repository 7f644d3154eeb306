package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: what moves the offsets of a consumer locks them in the order of the partitions, as commits do, so that none is the victim of
 * a deadlock. Method: a transaction has locked the offset of one partition, as a commit does, and another one waits for it; then
 * the first one locks the offsets of all higher partitions.
 */
class OffsetLockOrderIT {
    private static final int PARTITIONS = 6;

    private static TestCluster cluster;
    private static EventSql eventSql;
    private static DataSource database;

    private final String stream = TestStreams.newName();
    private long consumer;

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
        database = cluster.dataSources().getFirst();
    }

    /** Partitions 2 to 5 wait for what 0 and 1 had when the stream grew, which the consumer has handled. */
    @BeforeEach
    void growStream() throws SQLException {
        eventSql.createStream(TestStreams.of(stream).withPartitions(2));
        List<Event> events = IntStream.range(0, 100)
                .mapToObj(i -> Event.ofText("key" + i, "v"))
                .toList();
        eventSql.publisher().publishAll(stream, events);
        eventSql.grow(stream, PARTITIONS);
        eventSql.publisher().publishAll(stream, events);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add)) {
            handled.awaitSize(200);
        }
        consumer = Sql.queryLong(
                database,
                "SELECT consumer_id FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id) WHERE s.name = '"
                        + stream + "'");
        assertThat(waiting()).isEmpty();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private List<String> waiting() throws SQLException {
        return Sql.query(
                database, "SELECT DISTINCT partition FROM eventsql.held_partitions_v1(" + consumer + ") ORDER BY 1");
    }

    private List<String> take() throws SQLException {
        return Sql.query(
                database,
                "SELECT partition FROM eventsql.take_partitions_v1(NULL, " + consumer
                        + ", gen_random_uuid(), interval '1 h', 100, '{}')");
    }

    private String offsets(String condition) {
        return "SELECT partition FROM eventsql.consumer_offset WHERE consumer_id = " + consumer + " AND " + condition
                + " ORDER BY partition FOR UPDATE NOWAIT";
    }

    /** Has a call wait for the offset of a partition, and locks those of higher ones. */
    private void assertKeepsHigherOffsetsFree(int partition, CallThatWaits call) throws Exception {
        try (Connection commit = database.getConnection()) {
            commit.setAutoCommit(false);
            assertThat(Sql.query(commit, offsets("partition = " + partition))).hasSize(1);
            CompletableFuture<Void> waits = CompletableFuture.runAsync(() -> {
                try {
                    call.run();
                } catch (SQLException e) {
                    throw new IllegalStateException(e);
                }
            });
            await().atMost(Duration.ofSeconds(30))
                    .pollInterval(Duration.ofMillis(5))
                    .until(() -> waits.isDone()
                            || Sql.queryLong(
                                            database,
                                            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                                    + " AND wait_event = 'transactionid'")
                                    > 0);
            assertThat(waits).isNotDone();
            assertThat(Sql.query(commit, offsets("partition > " + partition))).hasSize(PARTITIONS - 1 - partition);
            commit.rollback();
            waits.get(60, TimeUnit.SECONDS);
        }
    }

    private interface CallThatWaits {
        void run() throws SQLException;
    }

    @Test
    void seek_receiversMustWaitAgain_locksOffsetsInOrder() throws Exception {
        assertThat(take()).hasSize(PARTITIONS);
        assertKeepsHigherOffsetsFree(1, () -> eventSql.consumer(stream, "c").seek(StartPosition.EARLIEST));
        assertThat(eventSql.consumer(stream, "c").state()).hasSize(PARTITIONS).allSatisfy(state -> {
            assertThat(state.nextOffset()).isZero();
            assertThat(state.member()).isNull();
        });
        assertThat(waiting()).containsExactly("2", "3", "4", "5");
    }

    @Test
    void hold_severalReceivers_locksOffsetsInOrder() throws Exception {
        assertThat(take()).hasSize(PARTITIONS);
        Sql.execute(
                database,
                "UPDATE eventsql.consumer_offset SET next_offset = 0 WHERE partition < 2 AND consumer_id = "
                        + consumer);
        assertKeepsHigherOffsetsFree(
                2, () -> Sql.execute(database, "SELECT eventsql.hold_receivers_v1(" + consumer + ", '{}', '{}')"));
        assertThat(eventSql.consumer(stream, "c").state()).allSatisfy(state -> {
            if (state.partition() < 2) {
                assertThat(state.member()).isNotNull();
            } else {
                assertThat(state.member()).isNull();
            }
        });
    }

    /** The order of the rows is that of the locks. */
    @Test
    void take_oneOffsetIsLocked_takesTheOthersInOrder() throws Exception {
        try (Connection commit = database.getConnection()) {
            commit.setAutoCommit(false);
            assertThat(Sql.query(commit, offsets("partition = 2"))).hasSize(1);
            assertThat(take()).containsExactly("0", "1", "3", "4", "5");
            commit.rollback();
        }
        assertThat(take()).containsExactly("2");
    }
}
