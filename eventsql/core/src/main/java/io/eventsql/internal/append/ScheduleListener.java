package io.eventsql.internal.append;

import io.eventsql.internal.shard.Shard;

/** Is called for each event that this process has scheduled on a shard. */
@FunctionalInterface
public interface ScheduleListener {
    /**
     * An event was scheduled.
     *
     * @param nanos in which time it is due, by the shard's clock; negative if it has been due for it
     */
    void scheduled(Shard shard, long nanos);
}
