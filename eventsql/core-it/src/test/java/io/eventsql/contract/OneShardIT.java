package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/** Runs the contract with one shard. */
@TestInstance(Lifecycle.PER_CLASS)
class OneShardIT {
    private final ContractCluster shared = new ContractCluster(1, Storage.ROWS);

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
    class Consuming extends ConsumingContract {
        Consuming() {
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
    class AggregateGenerations extends AggregateGenerationsContract {
        AggregateGenerations() {
            super(shared);
        }
    }

    @Nested
    class WakeUp extends WakeUpContract {
        WakeUp() {
            super(1);
        }
    }
}
