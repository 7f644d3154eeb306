package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.fixture.NestedBorrows;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.load.EveryOperation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: no thread borrows a connection of a pool while it has one, so that no number of threads can exhaust a pool of the
 * required size and wait for each other. Method: pools record such threads while the library is used in every way, on
 * streams that another process has created, so that all of them are looked up; in between both databases change their
 * incarnation.
 */
@Timeout(180)
class OneConnectionAtATimeIT {
    private static final String STREAM = "single";

    @Test
    void everyOperation_twoShardsAndAnOutbox_borrowsOneConnectionAtATime() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(2);
                HikariDataSource standalone = TestCluster.pool(TestCluster.newDatabase())) {
            EventSql other = cluster.open();
            List<NestedBorrows> shards = new ArrayList<>();
            cluster.dataSources().forEach(pool -> shards.add(new NestedBorrows(pool)));
            NestedBorrows outbox = new NestedBorrows(standalone);
            Settings settings = Settings.builder().lease(Duration.ofSeconds(2)).build();
            try (EventSql eventSql =
                    EventSql.builder(shards).outbox(outbox).settings(settings).build()) {
                for (String stream : List.of(STREAM + 1, STREAM + 2)) {
                    other.createStream(StreamSpec.of(stream).withPartitions(1).withSegmentSize(100));
                    EveryOperation.run(eventSql, stream, stream.endsWith("1") ? outbox : shards.getFirst());
                    cluster.execute("SELECT eventsql.declare_restored('a test')");
                    Sql.execute(standalone, "SELECT eventsql.declare_restored('a test')");
                }
            }
            for (NestedBorrows pool : List.of(shards.getFirst(), shards.getLast(), outbox)) {
                assertThat(pool.found()).isEmpty();
                await().until(() -> pool.borrowed() == 0);
            }
        }
    }
}
