package io.eventsql;

import java.util.List;

/** Handles events of one partition many at a time. */
@FunctionalInterface
public interface EventBatchHandler {
    /**
     * Handles events of one partition, in order; otherwise as {@link EventHandler#handle}.
     *
     * @param events 1 to {@link ConsumerSpec#pageEvents()} events with rising offsets, gapless unless keys are parked
     * @throws EventFailedException to say which event failed: those before it count as handled
     * @throws Exception to have the whole batch handled again. When {@link RetryPolicy} allows no further attempt, each
     *     event is handled in a batch of its own, to find the one that fails.
     */
    void handle(List<StoredEvent> events) throws Exception;
}
