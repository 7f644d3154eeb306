package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

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
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: an event waits in its outbox while the only shard that has its stream is unavailable. Method: a shard that was added and has no
 * keys yet has no streams; it responds, and so does its outbox.
 */
@Timeout(120)
class UnreachableShardOutboxIT {
    @Test
    void relay_onlyShardWithTheStreamIsUnavailable_eventWaits() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(2)) {
            DataSource used = cluster.dataSources().get(0);
            DataSource spare = cluster.dataSources().get(1);
            try (EventSql first = EventSql.builder(used).build()) {
                first.createStream(TestStreams.of("orders").withPartitions(1));
            }
            EventSql.builder(List.of(used, spare)).addShards().build().close();
            Sql.execute(
                    spare,
                    "INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                            + " SELECT last_value, 'orders', 'k', 'v', 0 FROM eventsql.outbox_ring");
            SwitchableDataSource switched = new SwitchableDataSource(used);
            switched.setAvailable(false);
            Settings settings = Settings.builder()
                    .outboxPollInterval(Duration.ofMillis(200))
                    .publishTimeout(Duration.ofSeconds(2))
                    .build();
            try (CapturedLog log = CapturedLog.ofRelay();
                    EventSql eventSql = EventSql.builder(List.of(switched, spare))
                            .settings(settings)
                            .build()) {
                await().until(() -> !log.lines("orders could not be read").isEmpty());
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
}
