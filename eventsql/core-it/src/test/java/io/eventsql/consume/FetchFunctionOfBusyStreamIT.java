package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a consumer of a busy stream fetches with the stream's own function, and handles every event once and in order when
 * that is dropped, or denied, while it fetches. Small segments: the function is out of date all the time.
 */
@Timeout(120)
class FetchFunctionOfBusyStreamIT {
    private static final String FUNCTION = "SELECT xmin FROM pg_proc WHERE proname = 'events_busy__fetch'";
    private static final String SIGNATURE =
            "FUNCTION eventsql.events_busy__fetch(text, int, text, int[], bigint[], int, bigint[])";

    private DataSource database;

    @Test
    void busyStream_functionIsDroppedAndDenied_everyEventIsHandledOnceAndInOrder() throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(1);
                CapturedLog log = CapturedLog.ofConsuming()) {
            database = cluster.dataSources().getFirst();
            EventSql eventSql = cluster.open();
            eventSql.createStream(TestStreams.of("busy").withPartitions(3).withSegmentSize(200));
            Handled handled = new Handled();
            AtomicBoolean stopped = new AtomicBoolean();
            AtomicInteger published = new AtomicInteger();
            Thread publisher = Thread.ofPlatform().start(() -> {
                while (!stopped.get()) {
                    eventSql.publisher().publish("busy", Event.ofText("key", "" + published.get()));
                    published.incrementAndGet();
                }
            });
            try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("busy", "c"), handled::add)) {
                String first = awaitFunction(List.of());
                Sql.execute(database, "DROP " + SIGNATURE);
                String second = awaitFunction(List.of(first));
                Sql.execute(database, "REVOKE ALL ON " + SIGNATURE + " FROM PUBLIC, \"" + user() + "\"");
                int before = handled.size();
                await().until(() -> handled.size() > before + 500);
                assertThat(second).isNotEqualTo(first);
                stopped.set(true);
                publisher.join();
                handled.awaitSize(published.get()).assertOnceAndInOrder();
            } finally {
                stopped.set(true);
                publisher.join();
            }
            assertThat(log.lines("Fetching ")).isEmpty();
        }
    }

    private String user() throws SQLException {
        return Sql.query(database, "SELECT current_user").getFirst();
    }

    private String awaitFunction(List<String> others) {
        return await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.query(database, FUNCTION), found -> !found.isEmpty() && !found.equals(others))
                .getFirst();
    }
}
