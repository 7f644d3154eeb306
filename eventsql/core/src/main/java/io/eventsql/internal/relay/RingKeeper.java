package io.eventsql.internal.relay;

import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.OutboxTable.TableSize;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the outbox's tables small. Deleted rows stay in a table's files while an old snapshot is open, and every poll would
 * scan them. New events are therefore directed to the next table of a ring from time to time, and a table no longer
 * written to is emptied by TRUNCATE. Used by one thread.
 */
final class RingKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(RingKeeper.class);
    /** Less than a thousand events: scanning a table full of dead rows takes a fraction of a millisecond. */
    private static final long ROTATE_FROM_BYTES = 256L << 10;
    /** Higher, because reading the transfer table does not visit dead rows. */
    private static final long COMPACT_FROM_BYTES = 1L << 20;

    private static final long INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final long BLOCKED_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final long FAILED_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(30);

    /** The maximum number of events that compacting the transfer table rewrites. */
    private static final int COMPACTED_EVENTS_MAX = 2_000;

    private static final long COMPACTED_BYTES_MAX = 4L << 20;

    private final OutboxDatabase outbox;
    private final Runnable transferCompacted;
    private boolean moved;
    private long nextNanos = System.nanoTime();
    private boolean failed;

    /** @param transferCompacted called after the transfer table was compacted: its readers must read it again */
    RingKeeper(OutboxDatabase outbox, Runnable transferCompacted) {
        this.outbox = outbox;
        this.transferCompacted = transferCompacted;
    }

    /** Marks that events were moved, or may have been. */
    void markMoved() {
        moved = true;
    }

    /**
     * Rotates and empties tables if due. That they cannot be does not keep events from being relayed.
     *
     * @throws SQLException if the lease has ended, or the database does not answer
     */
    void maintain(RelayLease lease) throws SQLException {
        if (!moved || System.nanoTime() - nextNanos < 0) {
            return;
        }
        try {
            rotateAndEmpty(lease);
            failed = false;
        } catch (SQLException e) {
            ErrorKind kind = SqlErrors.classify(e);
            if (kind == ErrorKind.NOT_SENT
                    || kind == ErrorKind.IN_DOUBT
                    || SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
                throw e;
            }
            nextNanos = System.nanoTime() + FAILED_INTERVAL_NANOS;
            if (!failed) {
                failed = true;
                LOG.warn(
                        "Emptying the tables of outbox {} failed, so they grow; retrying every {} s: {}",
                        outbox,
                        TimeUnit.NANOSECONDS.toSeconds(FAILED_INTERVAL_NANOS),
                        SqlErrors.message(e));
            }
        }
    }

    private void rotateAndEmpty(RelayLease lease) throws SQLException {
        boolean blocked = false;
        List<TableSize> tables = outbox.database().read(outbox.tables().events()::tableSizes);
        for (TableSize table : tables) {
            boolean worthwhile = table.isTransfer() ? table.bytes() >= COMPACT_FROM_BYTES : table.bytes() > 0;
            if (worthwhile && !table.current()) {
                blocked |= !empty(lease, table);
            }
        }
        boolean full = tables.stream().anyMatch(table -> table.current() && table.bytes() >= ROTATE_FROM_BYTES);
        if (full) {
            rotate(lease, tables);
        }
        moved = full || blocked;
        nextNanos = System.nanoTime() + (blocked && !full ? BLOCKED_INTERVAL_NANOS : INTERVAL_NANOS);
    }

    private void rotate(RelayLease lease, List<TableSize> tables) throws SQLException {
        Optional<TableSize> next = tables.stream()
                .filter(table -> !table.current() && !table.isTransfer() && table.bytes() == 0)
                .findFirst();
        if (next.isEmpty()) {
            LOG.debug("All tables of outbox {} are in use; not rotating", outbox);
            return;
        }
        int ring = next.get().ring();
        outbox.database().transaction(connection -> {
            outbox.tables().relay().lock(connection, lease);
            outbox.tables().events().rotate(connection, ring);
            return ring;
        });
    }

    /** Empties a table; returns {@code false} if events or open transactions prevent it. */
    private boolean empty(RelayLease lease, TableSize table) throws SQLException {
        try {
            boolean emptied = outbox.database().transaction(connection -> {
                outbox.tables().relay().lock(connection, lease);
                return table.isTransfer()
                        ? outbox.tables().transfer().compact(connection, COMPACTED_EVENTS_MAX, COMPACTED_BYTES_MAX)
                        : outbox.tables().events().truncateIfEmpty(connection, table.ring());
            });
            if (emptied && table.isTransfer()) {
                transferCompacted.run();
            }
            return emptied;
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.LOCK_NOT_AVAILABLE)) {
                LOG.debug("A table of outbox {} is in use; emptying it later", outbox, e);
                return false;
            }
            throw e;
        }
    }
}
