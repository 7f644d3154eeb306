package io.eventsql.spring.internal;

import java.util.Map;

/** Receives the names of the shards once {@link io.eventsql.EventSql} exists. */
public interface ShardNamesAware {
    /**
     * Receives the names.
     *
     * @param names by the shards' numbers
     */
    void setShardNames(Map<Integer, String> names);
}
