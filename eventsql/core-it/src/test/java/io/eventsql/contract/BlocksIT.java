package io.eventsql.contract;

import io.eventsql.Storage;
import org.junit.jupiter.api.Nested;

/** Runs the contract with one shard and streams that store blocks. */
class BlocksIT {
    @Nested
    class Streams extends StreamsContract {
        Streams() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Publishing extends PublishingContract {
        Publishing() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class PublishingOrder extends PublishingOrderContract {
        PublishingOrder() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Reading extends ReadingContract {
        Reading() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Consuming extends ConsumingContract {
        Consuming() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Tombstones extends TombstonesContract {
        Tombstones() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class FailingHandlers extends FailingHandlersContract {
        FailingHandlers() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Members extends MembersContract {
        Members() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class WakeUp extends WakeUpContract {
        WakeUp() {
            super(1, Storage.BLOCKS);
        }
    }

    @Nested
    class Closing extends ClosingContract {
        Closing() {
            super(1, Storage.BLOCKS);
        }
    }
}
