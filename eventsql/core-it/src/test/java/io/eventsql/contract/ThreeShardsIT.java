package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.Nested;

/** The contract with three shards. */
class ThreeShardsIT {
    @Nested
    class Streams extends StreamsContract {
        Streams() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Publishing extends PublishingContract {
        Publishing() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class PublishingOrder extends PublishingOrderContract {
        PublishingOrder() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Reading extends ReadingContract {
        Reading() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Consuming extends ConsumingContract {
        Consuming() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Tombstones extends TombstonesContract {
        Tombstones() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class FailingHandlers extends FailingHandlersContract {
        FailingHandlers() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Members extends MembersContract {
        Members() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class WakeUp extends WakeUpContract {
        WakeUp() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Closing extends ClosingContract {
        Closing() {
            super(3, Storage.ROWS);
        }
    }

    @Nested
    class Aggregates extends AggregatesContract {
        Aggregates() {
            super(3, Storage.ROWS);
        }
    }
}
