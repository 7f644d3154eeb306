package io.eventsql.internal.consume;

import io.eventsql.internal.sql.FetchedPage;

/** Has the events of fetched pages handled. */
interface PageHandler {
    /**
     * Handles a page, or queues its events; returns when there is room for the next page of the partition. Releases the
     * page's memory when its events are handled or left to the next owner.
     */
    void handle(Assignment assignment, FetchedPage page, HandlerTurn turn);

    /** Waits until no event of earlier pages is queued or being handled. */
    void awaitIdle(Assignment assignment, HandlerTurn turn);
}
