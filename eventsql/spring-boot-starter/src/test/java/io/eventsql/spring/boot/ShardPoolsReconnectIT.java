package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.ReconnectingDataSource;
import org.junit.jupiter.api.Test;

/** The pools of {@code eventsql.shards} have a connection as soon as their database is back. */
class ShardPoolsReconnectIT extends AutoConfigurationFixture {
    @Test
    void pool_connectsByAReconnectingDataSource() {
        withShards(1).withPropertyValues("eventsql.streams.orders.partitions=1").run(context -> {
            HikariDataSource pool =
                    (HikariDataSource) context.getBean(ShardPools.class).dataSource("a");
            assertThat(pool.getDataSource()).isInstanceOf(ReconnectingDataSource.class);
            context.getBean(EventPublisher.class).publish("orders", Event.ofText("x"));
        });
    }
}
