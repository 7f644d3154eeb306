package io.eventsql.internal.relay;

import io.eventsql.internal.sql.OutboxTable.TableSize;
import io.eventsql.internal.sql.RelayTable.Tenure;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the tables that events go through small: rows that were moved stay in a table's files while any old snapshot is
 * open, and every look would visit them. So new events go to another table of the ring from time to time, and a table
 * that is not written to any more is emptied by TRUNCATE. Used by one thread.
 */
final class RingKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(RingKeeper.class);
    /** Under a thousand events: a look at a table full of dead ones takes a fraction of a millisecond. */
    private static final long ROTATE_FROM_BYTES = 256L << 10;
    /** The reader of the transfer table visits no dead ones. */
    private static final long COMPACT_FROM_BYTES = 1L << 20;

    private static final long EVERY_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final long BLOCKED_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final String INSUFFICIENT_PRIVILEGE = "42501";

    /** More is not put back into the transfer table. */
    private static final int COMPACTED_EVENTS_MAX = 2_000;

    private static final long COMPACTED_BYTES_MAX = 4L << 20;

    private final OutboxDatabase outbox;
    private final Runnable transferCompacted;
    private boolean moved;
    private long nextNanos = System.nanoTime();
    private boolean forbidden;

    /** @param transferCompacted told that who has read the transfer table must read it again */
    RingKeeper(OutboxDatabase outbox, Runnable transferCompacted) {
        this.outbox = outbox;
        this.transferCompacted = transferCompacted;
    }

    /** Says that events went through, or may have. */
    void moved() {
        moved = true;
    }

    /** Does what is due. */
    void keep(Tenure tenure) throws SQLException {
        if (!moved || forbidden || System.nanoTime() - nextNanos < 0) {
            return;
        }
        boolean blocked = false;
        List<TableSize> tables = outbox.database().call(outbox.tables().events()::tableSizes);
        for (TableSize table : tables) {
            boolean worthIt = table.isTransfer() ? table.bytes() >= COMPACT_FROM_BYTES : table.bytes() > 0;
            if (worthIt && !table.current()) {
                blocked |= !empty(tenure, table);
            }
        }
        boolean full = tables.stream().anyMatch(table -> table.current() && table.bytes() >= ROTATE_FROM_BYTES);
        if (full) {
            tables.stream()
                    .filter(table -> !table.current() && !table.isTransfer() && table.bytes() == 0)
                    .findFirst()
                    .ifPresentOrElse(table -> rotate(tenure, table), () -> LOG.debug("{}: all tables in use", outbox));
        }
        moved = full || blocked;
        nextNanos = System.nanoTime() + (blocked && !full ? BLOCKED_NANOS : EVERY_NANOS);
    }

    private void rotate(Tenure tenure, TableSize to) {
        try {
            outbox.database().transaction(connection -> {
                outbox.tables().relay().lock(connection, tenure);
                outbox.tables().events().rotate(connection, to.ring());
                return to;
            });
        } catch (SQLException e) {
            LOG.debug("{}: the table is changed next time", outbox, e);
        }
    }

    /** Empties a table; returns false if events or open transactions hinder it. */
    private boolean empty(Tenure tenure, TableSize table) throws SQLException {
        try {
            boolean emptied = outbox.database().transaction(connection -> {
                outbox.tables().relay().lock(connection, tenure);
                return table.isTransfer()
                        ? outbox.tables().transfer().compact(connection, COMPACTED_EVENTS_MAX, COMPACTED_BYTES_MAX)
                        : outbox.tables().events().truncateIfEmpty(connection, table.ring());
            });
            if (emptied && table.isTransfer()) {
                transferCompacted.run();
            }
            return emptied;
        } catch (SQLException e) {
            switch (SqlErrors.state(e)) {
                case SqlErrors.LOCK_NOT_AVAILABLE -> LOG.debug("{}: a table is still in use", outbox);
                case INSUFFICIENT_PRIVILEGE -> {
                    forbidden = true;
                    LOG.warn(
                            "{}: this role may not TRUNCATE the outbox's tables; autovacuum alone keeps them small: {}",
                            outbox,
                            e.getMessage());
                }
                default -> throw e;
            }
            return false;
        }
    }
}
