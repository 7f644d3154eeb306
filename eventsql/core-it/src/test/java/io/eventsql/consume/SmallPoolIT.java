package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.time.Duration;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: consuming needs one connection next to the one that listens: no path waits for a second one while it holds one.
 * Method: a pool of two connections; other processes create the stream, so that this one has to look everything up.
 */
@Timeout(120)
class SmallPoolIT {
    private static final int EVENTS = 100;

    @ParameterizedTest
    @EnumSource(FailurePolicy.class)
    void poolOfTwo_eventsFail_allAreHandledOrStored(FailurePolicy policy) throws Exception {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            EventSql other = cluster.open();
            other.createStream(StreamSpec.of("orders").withPartitions(2));
            other.createStream(StreamSpec.of("orders_dead_letter").withPartitions(2));
            String url;
            try (Connection connection = cluster.dataSources().getFirst().getConnection()) {
                url = connection.getMetaData().getURL();
            }
            Handled handled = new Handled();
            boolean fails = policy != FailurePolicy.STOP;
            try (HikariDataSource pool = Pools.pool(TestCluster.server(), url, config -> config.setMaximumPoolSize(2));
                    EventSql eventSql = EventSql.builder(pool).build()) {
                eventSql.subscribe(
                        ConsumerSpec.of("orders", "c")
                                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                                .withFailurePolicy(policy),
                        event -> {
                            if (fails && event.offset() % 10 == 0) {
                                throw new IllegalStateException("cannot handle it");
                            }
                            handled.add(event);
                        });
                for (int i = 0; i < EVENTS; i++) {
                    other.publisher().publish("orders", Event.ofText("key" + i, "value" + i));
                }
                await().atMost(Duration.ofSeconds(60))
                        .until(() -> other.positions("orders", "c").stream().allMatch(p -> p.lag() == 0));
            }
            int failed = other.consumer("orders", "c").parkedEvents(EVENTS).size();
            assertThat(failed > 0).isEqualTo(fails);
            assertThat(handled.size() + failed).isEqualTo(EVENTS);
        }
    }
}
