package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Events wait in their outbox while the only shard that has their stream is unavailable; those of other streams do not. */
@Timeout(120)
class UnreachableShardOutboxIT {
    private static Settings settings() {
        return Settings.builder().outboxPollInterval(Duration.ofMillis(200)).build();
    }

    private static void insert(DataSource outbox, String stream, String key, String value) throws SQLException {
        Sql.query(
                outbox,
                "INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                        + " SELECT last_value, ?, ?, convert_to(?, 'UTF8'), 0 FROM eventsql.outbox_ring RETURNING id",
                stream,
                key,
                value);
    }

    private static String keyOfFirst() {
        return TestCluster.keysOfShard(0, 2, "k").findFirst().orElseThrow();
    }

    private static List<String> values(DataSource shard, String stream) throws SQLException {
        return Sql.query(
                shard, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream + " ORDER BY event_offset");
    }

    private static void awaitValues(DataSource shard, String stream, String... expected) {
        await().ignoreExceptions() // until its table is there
                .untilAsserted(() -> assertThat(values(shard, stream)).containsExactly(expected));
    }

    private static void awaitTransferred(DataSource outbox, long events) {
        await().until(() -> Sql.queryLong(outbox, "SELECT count(*) FROM eventsql.outbox_transfer") == events);
    }

    /** A shard that was added and has no keys yet has no streams; it responds, and so does its outbox. */
    @Test
    void relay_onlyShardWithTheStreamIsUnavailable_eventWaits() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(2)) {
            DataSource used = cluster.dataSources().get(0);
            DataSource spare = cluster.dataSources().get(1);
            try (EventSql first = EventSql.builder(used).build()) {
                first.createStream(TestStreams.of("orders").withPartitions(1));
            }
            EventSql.builder(List.of(used, spare)).addShards().build().close();
            insert(spare, "orders", "k", "v");
            SwitchableDataSource switched = new SwitchableDataSource(used);
            switched.setAvailable(false);
            try (CapturedLog log = CapturedLog.ofRelay();
                    EventSql eventSql = EventSql.builder(List.of(switched, spare))
                            .settings(settings())
                            .build()) {
                await().until(() -> !log.lines("keeps its events").isEmpty());
                assertThatThrownBy(() -> eventSql.publisher().publish("orders", Event.ofText("k", "w")))
                        .isInstanceOf(EventSqlException.class)
                        .isNotInstanceOf(UnknownStreamException.class)
                        .hasMessageContaining("is unavailable");
                assertThat(Sql.query(spare, "SELECT error FROM eventsql.outbox_refused"))
                        .isEmpty();
                switched.setAvailable(true);
                await().atMost(Duration.ofMinutes(1))
                        .untilAsserted(() -> assertThat(Sql.query(used, "SELECT key FROM eventsql.events_orders"))
                                .containsExactly("k"));
            }
        }
    }

    /** The other shard was unavailable when the stream was created, or has lost it. The stream called "none" does not exist. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void relay_unavailableShardMayHaveTheStream_onlyItsEventsWaitAndInOrder(boolean isStandalone) throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(2);
                HikariDataSource application = TestCluster.pool(TestCluster.newDatabase())) {
            DataSource first = cluster.dataSources().get(0);
            SwitchableDataSource second =
                    new SwitchableDataSource(cluster.dataSources().get(1));
            DataSource outbox = isStandalone ? application : first;
            String key = keyOfFirst();
            try (EventSql creator = EventSql.builder(cluster.dataSources()).build()) {
                creator.createStream(TestStreams.of("orders").withPartitions(1));
                creator.createStream(TestStreams.of("late").withPartitions(1));
            }
            Sql.execute(
                    first,
                    "DELETE FROM eventsql.stream WHERE name = 'late'",
                    "DROP TABLE " + TestStreams.table("late") + " CASCADE");
            try (EventSql eventSql = EventSql.builder(List.of(first, second))
                    .outbox(application)
                    .settings(settings())
                    .build()) {
                second.setAvailable(false);
                insert(outbox, "late", key, "1");
                insert(outbox, "none", key, "1");
                insert(outbox, "orders", key, "1");
                awaitValues(first, "orders", "1");
                eventSql.publisher().schedule("orders", Event.ofText(key, "due"), Instant.now());
                awaitValues(first, "orders", "1", "due");
                insert(outbox, "late", key, "2");
                awaitTransferred(outbox, 3);
                assertThat(Sql.query(outbox, "SELECT error FROM eventsql.outbox_refused"))
                        .isEmpty();

                second.setAvailable(true);
                insert(outbox, "late", key, "3");

                awaitValues(first, "late", "1", "2", "3");
                awaitTransferred(outbox, 0);
                assertThat(Sql.query(outbox, "SELECT error FROM eventsql.outbox_refused"))
                        .containsExactly("there is no stream none");
            }
        }
    }

    /** A relay has moved the first event to the transfer table, and ended. The next one finds the stream at once. */
    @Test
    void relay_formerOneLeftAnEventForItsOwnShard_itIsSentBeforeLaterOnesOfItsKey() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(2)) {
            DataSource first = cluster.dataSources().get(0);
            String key = keyOfFirst();
            try (EventSql former = EventSql.builder(cluster.dataSources()).build()) {
                former.createStream(TestStreams.of("orders").withPartitions(1));
            }
            Sql.query(
                    first,
                    "INSERT INTO eventsql.outbox_transfer (shard, producer_id, stream, partition, key, value, written_at)"
                            + " SELECT 0, producer_id, 'orders', 0, ?, '1', now() FROM eventsql.outbox_relay"
                            + " RETURNING number",
                    key);
            insert(first, "orders", key, "2");
            cluster.open();
            awaitValues(first, "orders", "1", "2");
            awaitTransferred(first, 0);
        }
    }
}
