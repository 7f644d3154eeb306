package io.eventsql.internal.append;

import io.eventsql.Settings;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.wake.WakeUp;
import java.util.UUID;

/**
 * What the appenders of all shards share.
 *
 * @param producer identifies this instance; scope of the batch numbers
 */
public record PublishContext(
        UUID producer,
        Settings settings,
        StreamRegistry streams,
        SegmentKeeper segments,
        WakeUp wakeUp,
        PublishListeners listeners) {}
