package io.eventsql;

import java.sql.Connection;

/** Handles one event at a time, in the transaction that also commits the consumer's offset: exactly once. */
@FunctionalInterface
public interface TransactionalEventHandler {
    /**
     * Handles an event: what it writes through the connection is committed together with the offset, or not at all.
     * Otherwise as {@link EventHandler#handle}.
     *
     * @param connection of the event's shard, in a READ COMMITTED transaction. It refuses {@code commit}, {@code
     *     rollback} without a savepoint, {@code close} and changes of autocommit or isolation. The server ends the
     *     transaction when nothing is sent for {@link ConsumerSpec#handlerTimeout()}.
     * @throws Exception to have everything rolled back and the event handled again
     */
    void handle(StoredEvent event, Connection connection) throws Exception;
}
