package io.eventsql;

import java.util.List;

/** Handles events of one partition many at a time. */
@FunctionalInterface
public interface EventBatchHandler {
    /**
     * Handles events of one partition, in order; otherwise as {@link EventHandler#handle}.
     *
     * @param events 1 to {@link ConsumerSpec#pageEvents()} events with rising, gapless offsets
     * @throws Exception to have the whole batch handled again
     */
    void handle(List<StoredEvent> events) throws Exception;
}
