package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what an application must do that keeps the effects of its handlers in a database of its own, when that database or
 * the shard is restored, so that each stored event has exactly one effect again. The library cannot do it: the two databases
 * have no common transaction.
 *
 * <p>Method: handlers write each event's effect once, identified by its offset. Then one of the databases goes back in time.
 */
@Timeout(120)
class ApplicationDatabaseRestoredIT {
    private static final String STREAM = "orders";
    private static final Settings SETTINGS = Settings.builder()
            .lease(Duration.ofSeconds(4))
            .heartbeat(Duration.ofMillis(500))
            .build();

    private TestCluster cluster;
    private DataSource shard;
    private HikariDataSource application;
    private EventSql eventSql;

    @BeforeEach
    void open() throws SQLException {
        cluster = TestCluster.ofShards(1);
        shard = cluster.dataSources().getFirst();
        application = TestCluster.pool(TestCluster.newDatabase());
        Sql.execute(
                application,
                "CREATE TABLE effect (consumer text, event_offset bigint, text text, PRIMARY KEY (consumer, event_offset))");
        eventSql = EventSql.builder(shard)
                .settings(SETTINGS)
                .listener(new ConsumerListener() {
                    @Override
                    public void historyLost(ConsumerPartition partition, long fromOffset, long toOffset) {
                        if (partition.consumer().equals("careful")) {
                            removeEffects(partition.consumer(), fromOffset);
                        }
                    }
                })
                .build();
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(1).withSegmentSize(1_000));
    }

    @AfterEach
    void close() {
        eventSql.close();
        application.close();
        cluster.close();
    }

    private void subscribe(String consumer) {
        eventSql.subscribe(ConsumerSpec.of(STREAM, consumer), event -> writeEffect(consumer, event));
    }

    /** Has no second effect if the event is handled again. */
    private void writeEffect(String consumer, StoredEvent event) throws SQLException {
        try (Connection connection = application.getConnection();
                PreparedStatement insert =
                        connection.prepareStatement("INSERT INTO effect VALUES (?, ?, ?) ON CONFLICT DO NOTHING")) {
            insert.setString(1, consumer);
            insert.setLong(2, event.offset());
            insert.setString(3, event.text());
            insert.executeUpdate();
        }
    }

    /** Removes the effects of events that the consumer handles again, or that no longer exist. */
    private void removeEffects(String consumer, long from) {
        try (Connection connection = application.getConnection();
                PreparedStatement delete =
                        connection.prepareStatement("DELETE FROM effect WHERE consumer = ? AND event_offset >= ?")) {
            delete.setString(1, consumer);
            delete.setLong(2, from);
            delete.executeUpdate();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void publish(EventSql publisher, String prefix, int count) {
        publisher
                .publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key", prefix + i))
                                .toList());
    }

    private void awaitCommitted(String consumer, long offset) {
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .until(() -> eventSql.positions(STREAM, consumer).stream().allMatch(p -> p.nextOffset() == offset));
    }

    private List<String> effects(String consumer) throws SQLException {
        return Sql.query(application, "SELECT text FROM effect WHERE consumer = ? ORDER BY event_offset", consumer);
    }

    private List<String> stored() throws SQLException {
        return Sql.query(
                shard, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM + " ORDER BY event_offset");
    }

    @Test
    void shardRestored_effectsFromTheReportedOffsetOnAreRemoved_eachStoredEventHasOneEffect() throws Exception {
        subscribe("careful");
        subscribe("careless");
        publish(eventSql, "kept", 3);
        awaitCommitted("careful", 3);
        awaitCommitted("careless", 3);
        LogicalBackup backup = LogicalBackup.take(shard);
        publish(eventSql, "lost", 5);
        awaitCommitted("careful", 8);
        awaitCommitted("careless", 8);

        backup.restore(shard);
        try (EventSql other = EventSql.builder(shard).settings(SETTINGS).build()) {
            publish(other, "new", 7);
        }
        awaitCommitted("careful", 10);
        awaitCommitted("careless", 10);
        assertThat(effects("careful")).isEqualTo(stored());
        assertThat(effects("careless"))
                .as("offsets that are used again identify no event")
                .containsExactly(
                        "kept0", "kept1", "kept2", "lost0", "lost1", "lost2", "lost3", "lost4", "new5", "new6");
    }

    @Test
    void applicationDatabaseRestored_seekToItsOwnPosition_eachStoredEventHasOneEffect() throws Exception {
        subscribe("c");
        publish(eventSql, "kept", 3);
        awaitCommitted("c", 3);
        publish(eventSql, "forgotten", 5);
        awaitCommitted("c", 8);
        removeEffects("c", 3); // as a backup of this moment would
        publish(eventSql, "new", 2);
        awaitCommitted("c", 10);
        assertThat(effects("c")).doesNotContain("forgotten0").contains("new1");

        long next = Sql.queryLong(application, "SELECT count(*) FROM effect WHERE event_offset < 3");
        eventSql.consumer(STREAM, "c").seek(new EventPosition(STREAM, 0, 0, next));
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(effects("c")).isEqualTo(stored()));
    }
}
