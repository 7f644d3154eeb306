package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/** Runs what depends on the number of shards in the contract with three of them. */
@TestInstance(Lifecycle.PER_CLASS)
class ThreeShardsIT {
    private final ContractCluster shared = new ContractCluster(3, Storage.ROWS);

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
    class Consuming extends ConsumingContract {
        Consuming() {
            super(shared);
        }
    }

    @Nested
    class Members extends MembersContract {
        Members() {
            super(shared);
        }
    }

    @Nested
    class Closing extends ClosingContract {
        Closing() {
            super(shared);
        }
    }

    @Nested
    class Aggregates extends AggregatesContract {
        Aggregates() {
            super(shared);
        }
    }

    @Nested
    class WakeUp extends WakeUpContract {
        WakeUp() {
            super(3);
        }
    }
}
