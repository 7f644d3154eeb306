package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.shard.Shards;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two producers, one after the other, in the one partition of a stream. */
@Timeout(120)
class DeadProducersIT {

    private static TestCluster cluster;

    private final String stream = TestStreams.newName();
    private final EventSql first = cluster.open();
    private final EventSql second = cluster.open();
    private final Shards shards = Shards.open(cluster.dataSources(), Settings.defaults());

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    @BeforeEach
    void publishWithBoth() throws SQLException {
        first.createStream(StreamSpec.of(stream).withPartitions(1));
        assertThat(publish(first)).isEqualTo(0);
        assertThat(publish(second)).isEqualTo(1);
        assertThat(producers()).hasSize(2);
    }

    @AfterEach
    void closeShards() {
        shards.close();
    }

    private long publish(EventSql with) {
        return with.publisher().publish(stream, Event.ofText("x")).offset();
    }

    /** The producers of batches, the newest last. */
    private List<String> producers() throws SQLException {
        return Sql.query(
                cluster.dataSources().getFirst(),
                "SELECT producer_id FROM eventsql.producer_batch JOIN eventsql.stream USING (stream_id) WHERE name = '"
                        + stream + "' AND batch_number > 0 ORDER BY next_offset");
    }

    private static void letDaysPass() throws SQLException {
        cluster.execute("UPDATE eventsql.producer_batch SET published_at = published_at - interval '25 hours'");
    }

    @Test
    void remove_inactiveForADay_deletesAllButTheHead() throws SQLException {
        String head = producers().getLast();
        letDaysPass();

        assertThat(new DeadProducers(UUID.randomUUID()).remove(shards.get(0))).isPositive();

        assertThat(producers()).containsExactly(head);
        assertThat(publish(first)).isEqualTo(2); // it still runs: no event is lost, no offset assigned twice
        assertThat(publish(second)).isEqualTo(3);
    }

    @Test
    void remove_recentBatches_areKept() throws SQLException {
        new DeadProducers(UUID.randomUUID()).remove(shards.get(0));

        assertThat(producers()).hasSize(2);
    }

    @Test
    void remove_ownBatches_areKept() throws SQLException {
        List<String> both = producers();
        letDaysPass();

        new DeadProducers(UUID.fromString(both.getFirst())).remove(shards.get(0));

        assertThat(producers()).isEqualTo(both);
    }

    @Test
    void removeInBackground_dataSourceThrowsRuntimeException_retries() throws SQLException {
        String head = producers().getLast();
        letDaysPass();
        AtomicInteger failures = new AtomicInteger();
        DataSource moody = new DelegatingDataSource(cluster.dataSources().getFirst()) {
            @Override
            public Connection getConnection() throws SQLException {
                if (failures.getAndDecrement() > 0) {
                    throw new IllegalStateException("as a pool does that is misconfigured");
                }
                return super.getConnection();
            }
        };
        Shards moodyShards = Shards.open(List.of(moody), Settings.defaults());
        try {
            failures.set(2);
            new DeadProducers(UUID.randomUUID(), Duration.ofMillis(1)).removeInBackground(moodyShards);
            await().untilAsserted(() -> assertThat(producers()).containsExactly(head));
        } finally {
            moodyShards.close();
        }
    }
}
