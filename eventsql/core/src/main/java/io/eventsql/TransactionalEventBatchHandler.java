package io.eventsql;

import java.sql.Connection;
import java.util.List;

/** Handles events of one partition in batches, in the transaction that also commits the consumer's offset: exactly once. */
@FunctionalInterface
public interface TransactionalEventBatchHandler {
    /**
     * Handles events of one partition, in order, in one transaction. Everything else is as with {@link
     * TransactionalEventHandler#handle}.
     *
     * @param events 1 to {@link ConsumerSpec#pageEvents()} events with increasing offsets
     * @throws EventFailedException to report which event failed; the transaction is rolled back, and the events before
     *     the failed one are handled again in a transaction of their own
     * @throws Exception to roll back the transaction and retry the whole batch
     */
    void handle(List<StoredEvent> events, Connection connection) throws Exception;
}
