package io.eventsql.internal.move;

import io.eventsql.ShardMove.State;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.MoveFunctions.StoredMove;
import java.util.List;
import java.util.Optional;

/**
 * A move.
 *
 * @param plan the slots that move
 * @param version the version of the slot map afterwards
 * @param shards all shards that have not been removed
 * @param decider the one of them where moves to the version are decided: the first one that has slots before
 * @param stored what that shard knows of it; empty: nothing has been done
 */
record Move(SlotPlan plan, int version, List<Shard> shards, Shard decider, Optional<StoredMove> stored) {
    State state() {
        if (plan.isEmpty()) {
            return State.DONE;
        }
        return stored.map(move -> move.isClosing() ? State.MOVING : State.PREPARING)
                .orElse(State.PENDING);
    }

    /** Returns the number of its decision. */
    long attempt() {
        return stored.orElseThrow().attempt();
    }
}
