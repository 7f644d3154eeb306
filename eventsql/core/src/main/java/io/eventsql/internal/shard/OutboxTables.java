package io.eventsql.internal.shard;

import io.eventsql.internal.sql.CountedEvents;
import io.eventsql.internal.sql.Notifications;
import io.eventsql.internal.sql.OutboxErasureTable;
import io.eventsql.internal.sql.OutboxTable;
import io.eventsql.internal.sql.RefusedTable;
import io.eventsql.internal.sql.RelayTable;
import io.eventsql.internal.sql.ScheduledTable;
import io.eventsql.internal.sql.SqlSchema;
import io.eventsql.internal.sql.TransferTable;
import io.eventsql.internal.sql.TransferredAppend;

/**
 * The statements of the outbox, written for one schema.
 *
 * @param counted for shards with streams that count the events of keys
 * @param append for shards that receive events from the outbox of another database
 * @param notifications the channel of the relay
 */
public record OutboxTables(
        OutboxTable events,
        CountedEvents counted,
        RelayTable relay,
        TransferTable transfer,
        RefusedTable refused,
        OutboxErasureTable erasures,
        ScheduledTable scheduled,
        TransferredAppend append,
        Notifications notifications) {

    static OutboxTables in(SqlSchema schema) {
        return new OutboxTables(
                new OutboxTable(schema),
                new CountedEvents(schema),
                new RelayTable(schema),
                new TransferTable(schema),
                new RefusedTable(schema),
                new OutboxErasureTable(schema),
                new ScheduledTable(schema),
                new TransferredAppend(schema),
                Notifications.ofOutbox(schema));
    }
}
