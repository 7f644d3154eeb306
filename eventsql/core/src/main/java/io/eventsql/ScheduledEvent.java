package io.eventsql;

import java.time.Instant;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * An event that is scheduled and was not appended to its stream yet. Its value is not read.
 *
 * @param id see {@link EventPublisher#schedule}
 * @param key {@code null}: an event without a key
 * @param due when it is to be appended, by the clock of the database that it waits in
 * @param scheduledAt when it was scheduled, by the same clock
 * @param valueBytes the size of its value; 0 for a tombstone
 * @param database the name of the shard, or of the standalone outbox, that it waits in
 */
public record ScheduledEvent(
        UUID id,
        String stream,
        @Nullable String key,
        Instant due,
        Instant scheduledAt,
        long valueBytes,
        String database) {}
