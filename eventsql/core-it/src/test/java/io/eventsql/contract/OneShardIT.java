package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.Nested;

/** Runs the contract with one shard. */
class OneShardIT {
    @Nested
    class Streams extends StreamsContract {
        Streams() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Publishing extends PublishingContract {
        Publishing() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class PublishingOrder extends PublishingOrderContract {
        PublishingOrder() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Reading extends ReadingContract {
        Reading() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Consuming extends ConsumingContract {
        Consuming() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Tombstones extends TombstonesContract {
        Tombstones() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class FailingHandlers extends FailingHandlersContract {
        FailingHandlers() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Members extends MembersContract {
        Members() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class WakeUp extends WakeUpContract {
        WakeUp() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Closing extends ClosingContract {
        Closing() {
            super(1, Storage.ROWS);
        }
    }

    @Nested
    class Aggregates extends AggregatesContract {
        Aggregates() {
            super(1, Storage.ROWS);
        }
    }
}
