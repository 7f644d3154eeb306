package io.eventsql.internal.append;

import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The slot map by which a publisher routes. When a shard has closed slots, the calls that wait for it move on first, in their
 * order; only then later calls are routed to the receivers. So for no key a later call overtakes an earlier one. Thread-safe.
 */
final class SlotRoutes {
    private final Shards shards;
    private final ReentrantLock switching = new ReentrantLock();
    private volatile SlotMap current;

    SlotRoutes(Shards shards) {
        this.shards = shards;
        this.current = shards.slots();
        shards.onStreamSeen(this::adopt);
    }

    /** Routes a stationary stream, of which no call has been routed, by its own slots. */
    private void adopt(String stream) {
        switching.lock();
        try {
            SlotMap known = shards.slots();
            if (known.of(stream) != known) {
                current = current.with(stream, known.of(stream), current.number() + 1);
            }
        } finally {
            switching.unlock();
        }
    }

    SlotMap current() {
        return current;
    }

    /** Moves the waiting calls of a shard. */
    @FunctionalInterface
    interface Step {
        /**
         * Moves the calls, unless the shard has batches in progress.
         *
         * @param next routes the slots of the shard as this process knows them now; in use when this has returned {@code true}
         * @return whether the calls have moved
         */
        boolean move(SlotMap next);
    }

    /** Routes the slots of a shard anew, after its waiting calls have moved. One shard at a time. */
    void switchAwayFrom(int shard, Step step) {
        switching.lock();
        try {
            SlotMap next = current.switched(shard, shards.slots(), current.number() + 1);
            if (step.move(next)) {
                current = next;
            }
        } finally {
            switching.unlock();
        }
    }
}
