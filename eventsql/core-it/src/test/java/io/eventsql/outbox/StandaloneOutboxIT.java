package io.eventsql.outbox;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.fixture.TestCluster;
import javax.sql.DataSource;

/** The outbox contract with an outbox in the application's own database, which is not a shard. */
class StandaloneOutboxIT extends OutboxTransactionsContract {
    private HikariDataSource own;

    @Override
    TestCluster newCluster() {
        return TestCluster.ofShards(2);
    }

    @Override
    DataSource outboxOf(TestCluster newCluster) {
        own = TestCluster.pool(TestCluster.newDatabase());
        return own;
    }

    @Override
    boolean isShard() {
        return false;
    }

    @Override
    void closeOutbox() {
        own.close();
    }
}
