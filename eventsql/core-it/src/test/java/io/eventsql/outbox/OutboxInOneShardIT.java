package io.eventsql.outbox;

import io.eventsql.fixture.TestCluster;
import javax.sql.DataSource;

/** The outbox contract with the outbox of the only shard. */
class OutboxInOneShardIT extends OutboxTransactionsContract {
    @Override
    TestCluster newCluster() {
        return TestCluster.ofShards(1);
    }

    @Override
    DataSource outboxOf(TestCluster newCluster) {
        return newCluster.dataSources().getFirst();
    }

    @Override
    boolean isShard() {
        return true;
    }
}
