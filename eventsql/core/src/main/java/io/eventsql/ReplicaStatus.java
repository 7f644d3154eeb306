package io.eventsql;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * State of a shard's replica, as this instance sees it.
 *
 * @param shard the shard's number
 * @param name the shard's name
 * @param isUsed whether events are read from the replica; if not, its readers read from the primary
 * @param lag how far it is behind the primary; {@code null} if this is not known, as at the start and after a failover
 * @param problem why it could not be read last; {@code null} if it could
 */
public record ReplicaStatus(
        int shard,
        String name,
        boolean isUsed,
        @Nullable Duration lag,
        @Nullable String problem) {}
