package io.eventsql.internal.consume;

import io.eventsql.StreamSpec;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.wake.WakeUp;
import org.jspecify.annotations.Nullable;

/**
 * What the pipelines of one member share, whatever the shard.
 *
 * @param deadLetterStream {@code null}: the consumer has none
 */
record PipelineContext(
        HandlerCall.Factory handler,
        @Nullable StreamSpec deadLetterStream,
        HandlerThreads handlerThreads,
        FetchBudget budget,
        CloseSignal closeSignal,
        SegmentKeeper segments,
        WakeUp wakeUp,
        Listeners listeners) {}
