package io.eventsql.outbox;

import io.eventsql.fixture.TestCluster;
import javax.sql.DataSource;

/** The outbox contract with the outbox of one of three shards. */
class OutboxInOneOfThreeShardsIT extends OutboxContract {
    @Override
    TestCluster newCluster() {
        return TestCluster.ofShards(3);
    }

    @Override
    DataSource outboxOf(TestCluster newCluster) {
        return newCluster.dataSources().get(1);
    }

    @Override
    boolean isShard() {
        return true;
    }
}
