package io.eventsql.contract;

import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.fixture.TestCluster;

/** Databases and an instance over them, which classes of the contract share: each of their tests has streams of its own. */
final class ContractCluster implements AutoCloseable {
    private final TestCluster databases;
    private final Storage storage;
    private final EventSql eventSql;

    ContractCluster(int shards, Storage storage) {
        this.databases = TestCluster.ofShards(shards);
        this.storage = storage;
        this.eventSql = EventSql.builder(databases.dataSources()).build();
    }

    TestCluster databases() {
        return databases;
    }

    /** Returns the storage of all streams. */
    Storage storage() {
        return storage;
    }

    EventSql eventSql() {
        return eventSql;
    }

    @Override
    public void close() {
        eventSql.close();
        databases.close();
    }
}
