package io.eventsql;

import java.sql.Connection;
import java.util.List;

/** Handles many events of one partition, in the transaction that also commits the consumer's offset: exactly once. */
@FunctionalInterface
public interface TransactionalEventBatchHandler {
    /**
     * Handles events of one partition, in order, in one transaction; otherwise as {@link
     * TransactionalEventHandler#handle}.
     *
     * @param events 1 to {@link ConsumerSpec#pageEvents()} events with rising offsets
     * @throws EventFailedException to say which event failed; everything is rolled back, the events before it are
     *     handled again in a transaction of their own
     * @throws Exception to have everything rolled back and the whole batch handled again
     */
    void handle(List<StoredEvent> events, Connection connection) throws Exception;
}
