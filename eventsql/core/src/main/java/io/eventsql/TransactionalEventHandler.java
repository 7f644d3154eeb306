package io.eventsql;

import java.sql.Connection;

/** Handles one event at a time, in the transaction that also commits the consumer's offset: exactly once. */
@FunctionalInterface
public interface TransactionalEventHandler {
    /**
     * Handles an event. Everything written through the connection is committed together with the offset, or not at all.
     * Everything else is as with {@link EventHandler#handle}.
     *
     * @param connection a connection to the event's shard, in a READ COMMITTED transaction. It rejects {@code commit},
     *     {@code rollback} without a savepoint, {@code close} and changes of autocommit or isolation level. The server
     *     aborts the transaction if it is idle for {@link ConsumerSpec#handlerTimeout()}; a {@code transaction_timeout} of the
     *     role or the database does not apply.
     * @throws Exception to roll back the transaction and retry the event
     */
    void handle(StoredEvent event, Connection connection) throws Exception;
}
