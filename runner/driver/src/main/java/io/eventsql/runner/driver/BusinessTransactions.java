package io.eventsql.runner.driver;

import io.eventsql.EventSql;
import javax.sql.DataSource;

/**
 * Transactions of an application's framework, for measuring what it costs to publish in them. Implementations are found
 * by {@link java.util.ServiceLoader}.
 */
public interface BusinessTransactions {

    /**
     * Creates the tables {@code limits_order_<run>} and {@code limits_plain_outbox_<run>}.
     *
     * @param eventSql the library, connected to the database of the transactions
     * @param dataSource the connections of the transactions
     * @param run part of the names of the tables; lower-case letters and digits
     */
    Targets open(EventSql eventSql, DataSource dataSource, String run);

    /** Each call is a transaction that writes a business row and the events of the call. Thread-safe. */
    interface Targets {

        /** Returns transactions that insert their events into a plain table that no consumer reads. */
        PublishTarget plainRow(String stream);

        /** Returns transactions that publish their events. */
        PublishTarget publishing(String stream);
    }
}
