package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/** Runs what depends on the storage in the contract with one shard and streams that store blocks. */
@TestInstance(Lifecycle.PER_CLASS)
class BlocksIT {
    private final ContractCluster shared = new ContractCluster(1, Storage.BLOCKS);

    @AfterAll
    void close() {
        shared.close();
    }

    @Nested
    class Streams extends StreamsContract {
        Streams() {
            super(shared);
        }
    }

    @Nested
    class JsonView extends JsonViewContract {
        JsonView() {
            super(shared);
        }
    }

    @Nested
    class Publishing extends PublishingContract {
        Publishing() {
            super(shared);
        }
    }

    @Nested
    class Rejection extends RejectionContract {
        Rejection() {
            super(shared);
        }
    }

    @Nested
    class PublishingOrder extends PublishingOrderContract {
        PublishingOrder() {
            super(shared);
        }
    }

    @Nested
    class Reading extends ReadingContract {
        Reading() {
            super(shared);
        }
    }

    @Nested
    class Pages extends PagesContract {
        Pages() {
            super(shared);
        }
    }

    @Nested
    class Tombstones extends TombstonesContract {
        Tombstones() {
            super(shared);
        }
    }

    @Nested
    class FailingHandlers extends FailingHandlersContract {
        FailingHandlers() {
            super(shared);
        }
    }

    @Nested
    class Members extends MembersContract {
        Members() {
            super(shared);
        }
    }
}
