package io.eventsql.spring.internal;

import java.util.function.IntFunction;

/** Receives the names of the shards once {@link io.eventsql.EventSql} exists. */
public interface ShardNamesAware {
    /**
     * Sets the names.
     *
     * @param names by the shards' numbers; the name of a shard can change when it becomes available
     */
    void setShardNames(IntFunction<String> names);
}
