package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import java.util.List;

/** Has the events of fetched pages handled. */
interface PageHandler {
    /** Handles a page, or queues its events; returns when there is room for the next page of the partition. */
    void handle(Assignment assignment, List<StoredEvent> page, HandlerTurn turn);

    /** Waits until no event of earlier pages is queued or being handled. */
    void awaitIdle(Assignment assignment, HandlerTurn turn);
}
