package io.eventsql.internal.relay;

import io.eventsql.internal.sql.RelayTable.Page;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;

/** Where {@link PageMover} takes events from. */
@FunctionalInterface
interface EventSource {
    /**
     * Deletes and returns the next events, in the transaction of the relay, whose row it locks first.
     *
     * @param maxBytes the number of bytes of values after which it takes no further event
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    Page take(Connection connection, RelayLease lease, int maxEvents, long maxBytes) throws SQLException;

    /** Returns whether they are the first of the outbox: all that waits in it follows them. Scheduled events follow what waits in it. */
    default boolean isOutbox() {
        return true;
    }
}
