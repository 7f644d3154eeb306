package io.eventsql;

import java.util.List;
import java.util.Map;

/**
 * All consumers of all streams, as far as the shards responded.
 *
 * @param consumers ordered by stream and name
 * @param unavailableShards why the other shards did not respond, by name, or that this process was not given their databases;
 *     their partitions are missing from {@code consumers}
 */
public record ConsumerOverview(List<ConsumerStatus> consumers, Map<String, String> unavailableShards) {
    /** Copies the collections. */
    public ConsumerOverview {
        consumers = List.copyOf(consumers);
        unavailableShards = Map.copyOf(unavailableShards);
    }
}
