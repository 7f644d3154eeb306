package io.eventsql;

import java.util.List;

/** Handles events of one partition in batches. */
@FunctionalInterface
public interface EventBatchHandler {
    /**
     * Handles events of one partition, in order. Everything else is as with {@link EventHandler#handle}.
     *
     * @param events 1 to {@link ConsumerSpec#pageEvents()} events with increasing offsets. There are gaps where keys are
     *     parked, and where events were compacted, erased, dead-lettered or skipped, or cannot be decoded.
     * @throws EventFailedException to report which event failed; the events before it count as handled
     * @throws Exception to retry the whole batch. When {@link RetryPolicy} allows no further attempt, each event is
     *     handled in a batch of its own to find the one that fails.
     */
    void handle(List<StoredEvent> events) throws Exception;
}
