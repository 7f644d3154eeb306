package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.LostHistory;
import io.eventsql.fixture.LostHistory.Range;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a process that has moved events from an outbox to a shard learns that the shard has lost them: they are no longer in
 * the outbox, so no process can send them again.
 *
 * <p>Method: a standalone outbox, and a shard that is restored to the state before the last events arrived.
 */
@Timeout(120)
class TransferredEventsLostIT {
    private static final String STREAM = "orders";
    private static final Settings SETTINGS = Settings.builder()
            .outboxLease(Duration.ofSeconds(1))
            .networkTimeout(Duration.ofSeconds(5))
            .build();

    private final LostHistory lost = new LostHistory();
    private TestCluster cluster;
    private DataSource shard;
    private HikariDataSource application;
    private EventSql eventSql;

    @BeforeEach
    void createCluster() {
        cluster = TestCluster.ofShards(1);
    }

    private void open(DataSource database) {
        shard = database;
        application = TestCluster.pool(TestCluster.newDatabase());
        eventSql = openEventSql();
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(1).withSegmentSize(1_000));
    }

    private EventSql openEventSql() {
        return EventSql.builder(shard)
                .outbox(application)
                .settings(SETTINGS)
                .publishListener(lost)
                .build();
    }

    @AfterEach
    void close() {
        eventSql.close();
        application.close();
        cluster.close();
    }

    private void publish(String prefix, int count) throws SQLException {
        publish(STREAM, "key", prefix, count);
    }

    private void publish(String stream, String key, String prefix, int count) throws SQLException {
        try (Connection transaction = application.getConnection()) {
            transaction.setAutoCommit(false);
            List<Event> events = IntStream.range(0, count)
                    .mapToObj(i -> Event.ofText(key, prefix + i))
                    .toList();
            eventSql.outbox().publishAll(transaction, stream, events);
            transaction.commit();
        }
        eventSql.outbox().committed();
    }

    private static List<String> stored(DataSource database) throws SQLException {
        return Sql.query(
                database,
                "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM + " ORDER BY event_offset");
    }

    private void awaitStored(int count) {
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .untilAsserted(() -> assertThat(stored(shard)).hasSize(count));
    }

    private void awaitLost(Range... ranges) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.published()).containsExactly(ranges));
    }

    /** Shown before the fix: nothing was reported. */
    @Test
    void restore_shardLosesEventsThatHadLeftTheOutbox_isReportedOnce() throws Exception {
        open(cluster.dataSources().getFirst());
        publish("kept", 3);
        awaitStored(3);
        LogicalBackup backup = LogicalBackup.take(shard);
        publish("lost", 5);
        awaitStored(8);

        backup.restore(shard);
        publish("new", 2);
        awaitLost(new Range(STREAM, 0, 3, 8));
        awaitStored(5);
        assertThat(stored(shard)).endsWith("new0", "new1");

        backup.restore(shard);
        publish("again", 2);
        awaitLost(new Range(STREAM, 0, 3, 8), new Range(STREAM, 0, 3, 5));
        awaitStored(5);
    }

    /** Shown before the fix: nothing was reported. */
    @Test
    void restore_eventsWereAcknowledgedToAnotherProcess_isReported() throws Exception {
        open(cluster.dataSources().getFirst());
        eventSql.createStream(TestStreams.of("pairs").withPartitions(2).withSegmentSize(1_000));
        Map<Integer, String> keys = new HashMap<>();
        for (int i = 0; keys.size() < 2; i++) {
            String key = "key" + i;
            keys.put(
                    eventSql.publisher()
                            .publish("pairs", Event.ofText(key, "x"))
                            .partition(),
                    key);
        }
        LogicalBackup backup = LogicalBackup.take(shard);
        long before = head(0);
        publish("pairs", keys.get(0), "lost", 2);
        awaitHead(0, before + 2);
        eventSql.close();
        eventSql = openEventSql();
        long ofOther = head(1);
        publish("pairs", keys.get(1), "first of this process", 1);
        awaitHead(1, ofOther + 1);

        backup.restore(shard);
        publish("pairs", keys.get(1), "new", 1);
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.published()).contains(new Range("pairs", 0, before, before + 2)));
    }

    private long head(int partition) throws SQLException {
        return Sql.queryLong(
                shard,
                "SELECT next_offset FROM eventsql.partition_head WHERE stream = 'pairs' AND partition = " + partition);
    }

    private void awaitHead(int partition, long atLeast) {
        await().atMost(Duration.ofSeconds(120)).ignoreExceptions().until(() -> head(partition) >= atLeast);
    }

    @Test
    void restart_nothingLost_isNotReported() throws Exception {
        try (EmbeddedEventsDb server = EmbeddedEventsDb.builder().durable(false).start();
                HikariDataSource pool = Pools.pool(server)) {
            open(pool);
            publish("before", 3);
            awaitStored(3);
            server.restart();
            publish("after", 2);
            awaitStored(5);
            assertThat(lost.published()).isEmpty();
            eventSql.close();
        }
    }
}
