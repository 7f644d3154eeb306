package io.eventsql.internal.relay;

import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.RelayTable.Page;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.ScheduledTable;
import io.eventsql.internal.sql.ScheduledTable.Due;
import io.eventsql.internal.sql.ScheduledTable.NextDue;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves the scheduled events of one outbox's database when they are due, by that database's clock. Used by the relay's thread
 * with its lease; only {@link #expect} and {@link #untilNextNanos} are thread-safe.
 *
 * <p>It remembers up to when it has moved events, and reads from shortly before that on, so that it never visits the row
 * versions of those moved before, however many an old snapshot keeps. An event whose transaction was committed long after it
 * was due is found by a search from the beginning, which takes a small share of the time.
 */
final class DueEvents implements EventSource {
    private static final Logger LOG = LoggerFactory.getLogger(DueEvents.class);
    /** How long the transaction that schedules an event may take until only a search from the beginning finds it. */
    private static final Duration LOOK_BACK = Duration.ofSeconds(2);
    /** The least pause between two searches, in terms of the last one. */
    private static final int PAUSE_PER_SEARCH = 20;
    /** While the relay polls for other reasons: whether another process has scheduled an event that is due soon. */
    private static final long CHECK_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    /** Events that are due are locked by other transactions. */
    private static final long LOCKED_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
    /** A transaction that publishes for the key of an event is expected to end sooner: longer waits are reported. */
    private static final long LONG_WAIT_NANOS = TimeUnit.SECONDS.toNanos(10);
    /** Then the relay polls its outbox, and renews its lease if necessary. */
    private static final long TURN_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(200);
    /** Of a time in the future, because a sum with the current time must not overflow. */
    private static final long NEVER_NANOS = TimeUnit.DAYS.toNanos(365);

    private static final long KEEP_INTERVAL_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final int ADVANCED_EVENTS_MAX = 5_000;

    private final OutboxDatabase outbox;
    private final long searchIntervalNanos;
    private final AtomicLong nextNanos = new AtomicLong(System.nanoTime() + NEVER_NANOS);
    private final FailureSeries failures = new FailureSeries();
    /** Since when the next event waits for such a transaction (nano time); {@code null}: it does not. */
    private @Nullable Long waitingSince;
    /** When that event was due. */
    private @Nullable OffsetDateTime waitingDue;

    private boolean isWaitReported;
    private long searchNanos = System.nanoTime();
    private long checkNanos = System.nanoTime();
    private long keepNanos = System.nanoTime();
    private @Nullable OffsetDateTime movedUpTo;
    private OffsetDateTime from = ScheduledTable.BEGINNING;
    private @Nullable OffsetDateTime lastTaken;
    /** The database's clock when the next event was read. */
    private @Nullable OffsetDateTime readNow;
    /** Whether all events that were due have been moved. */
    private boolean isComplete;
    /** How many events the current call has moved, also if it failed then. */
    private int moved;

    /** @param searchInterval the interval of searches from the beginning */
    DueEvents(OutboxDatabase outbox, Duration searchInterval) {
        this.outbox = outbox;
        this.searchIntervalNanos = searchInterval.toNanos();
    }

    @Override
    public boolean isOutbox() {
        return false;
    }

    @Override
    public Page take(Connection connection, RelayLease lease, int maxEvents, long maxBytes) throws SQLException {
        Due due = outbox.tables().scheduled().take(connection, lease, maxEvents, maxBytes, from);
        lastTaken = due.last();
        return due.page();
    }

    /** Begins a lease, in which nothing is known of the events. */
    void begin() {
        movedUpTo = null;
        searchNanos = System.nanoTime();
        nextNanos.set(searchNanos);
    }

    /** Expects an event to be due in this time, or to have been due for it if negative. */
    void expect(long nanos) {
        long at = System.nanoTime() + Math.min(nanos, NEVER_NANOS);
        nextNanos.accumulateAndGet(at, (a, b) -> a - b < 0 ? a : b);
    }

    /** Returns in which time the next event is expected to be due; negative if it is overdue. */
    long untilNextNanos() {
        return nextNanos.get() - System.nanoTime();
    }

    /** Forgets what is expected; returns in which time it was. */
    long takeExpected() {
        long now = System.nanoTime();
        return nextNanos.getAndSet(now + NEVER_NANOS) - now;
    }

    /** Returns whether there may be an event to move now. */
    boolean isDue() {
        return untilNextNanos() <= 0;
    }

    /**
     * Moves the events that are due, for a short time. An event that waits for a transaction keeps those behind it waiting, not those
     * before it.
     *
     * @return how many
     * @throws SQLException if the lease has ended, or the database does not answer
     */
    int move(RelayLease lease, PageMover mover) throws SQLException {
        long now = System.nanoTime();
        boolean isSearch = now - searchNanos >= 0;
        if (!isSearch && !isDue() && now - checkNanos < 0) {
            return 0;
        }
        moved = 0;
        try {
            if (isSearch) {
                search(lease, mover);
            } else {
                moveFrom(startingPoint(), lease, mover);
            }
            keep(lease);
            waitingSince = null;
            if (failures.end() > 0 || isWaitReported) {
                isWaitReported = false;
                LOG.info("Moving the scheduled events of outbox {} works again", outbox);
            }
            return moved;
        } catch (SQLException e) {
            ErrorKind kind = SqlErrors.classify(e);
            if (kind == ErrorKind.NOT_SENT
                    || kind == ErrorKind.IN_DOUBT
                    || SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
                throw e;
            }
            if (SqlErrors.isKeyReserved(e)) { // by a transaction, or by an event of the outbox, which may be next
                waitForTransaction(e);
                return moved;
            }
            FailureSeries.Failure failure = failures.add(SqlErrors.message(e));
            pauseNanos(TimeUnit.MILLISECONDS.toNanos(failure.retryMs()));
            if (failure.isNew()) {
                LOG.warn(
                        "Moving the scheduled events of outbox {} failed; retrying in {} ms: {}",
                        outbox,
                        failure.retryMs(),
                        SqlErrors.message(e));
            }
            return moved;
        }
    }

    private void waitForTransaction(SQLException e) {
        long now = System.nanoTime();
        Long since = waitingSince;
        if (since == null || !Objects.equals(waitingDue, lastTaken)) { // the page that failed had this event alone
            since = now;
            waitingSince = now;
            waitingDue = lastTaken;
            isWaitReported = false;
        }
        if (now - since >= LONG_WAIT_NANOS && !isWaitReported) {
            isWaitReported = true;
            LOG.warn(
                    "The due events of outbox {} have waited for {} s for a transaction that publishes for the key of the first"
                            + " one, or for what waits in the outbox: {}",
                    outbox,
                    TimeUnit.NANOSECONDS.toSeconds(LONG_WAIT_NANOS),
                    SqlErrors.message(e));
        }
        pauseNanos(LOCKED_PAUSE_NANOS);
    }

    private OffsetDateTime startingPoint() {
        OffsetDateTime upTo = movedUpTo;
        return upTo == null ? ScheduledTable.BEGINNING : upTo.minus(LOOK_BACK);
    }

    private void search(RelayLease lease, PageMover mover) throws SQLException {
        long begun = System.nanoTime();
        moveFrom(ScheduledTable.BEGINNING, lease, mover);
        OffsetDateTime now = readNow;
        long took = System.nanoTime() - begun;
        if (isComplete && now != null) {
            advanceTo(now.minusNanos(took));
        }
        searchNanos = begun + took + Math.max(searchIntervalNanos, PAUSE_PER_SEARCH * took);
    }

    private void advanceTo(@Nullable OffsetDateTime time) {
        if (time != null && (movedUpTo == null || time.isAfter(movedUpTo))) {
            movedUpTo = time;
        }
    }

    private void moveFrom(OffsetDateTime start, RelayLease lease, PageMover mover) throws SQLException {
        from = start;
        long end = System.nanoTime() + TURN_NANOS_MAX;
        boolean more = isDue() || readNext(start) <= 0;
        boolean found = more;
        while (more && System.nanoTime() - end < 0) {
            PageMover.Moved page = mover.move(lease);
            if (page.events() > 0) {
                moved += page.events();
                advanceTo(lastTaken);
            }
            more = page.full();
        }
        isComplete = !more;
        if (found) {
            nextNanos.set(System.nanoTime() + NEVER_NANOS); // before it is read: what is expected from now on counts
            if (readNext(startingPoint()) <= 0 && moved == 0) {
                pauseNanos(LOCKED_PAUSE_NANOS);
            }
        }
        checkNanos = System.nanoTime() + CHECK_INTERVAL_NANOS;
    }

    /** Reads when the next event is due, and expects it then; returns in which time. */
    private long readNext(OffsetDateTime start) throws SQLException {
        NextDue next = outbox.database().call(c -> outbox.tables().scheduled().nextDue(c, start));
        readNow = next.now();
        if (next.inMicros().isEmpty()) {
            return NEVER_NANOS;
        }
        long nanos = TimeUnit.MICROSECONDS.toNanos(next.inMicros().getAsLong());
        expect(nanos);
        return nanos;
    }

    private void pauseNanos(long nanos) {
        long at = System.nanoTime() + nanos;
        nextNanos.set(at);
        checkNanos = at;
        if (searchNanos - at < 0) {
            searchNanos = at;
        }
    }

    /** Advances events to the tables of their hours, and empties tables whose hours have passed, if that is due. */
    private void keep(RelayLease lease) throws SQLException {
        if (System.nanoTime() - keepNanos < 0) {
            return;
        }
        ScheduledTable scheduled = outbox.tables().scheduled();
        int advanced = outbox.database().transaction(c -> {
            outbox.tables().relay().lock(c, lease);
            return scheduled.advance(c, ADVANCED_EVENTS_MAX);
        });
        if (advanced == ADVANCED_EVENTS_MAX) {
            return; // there may be more
        }
        for (int ring : outbox.database().read(scheduled::passedTables)) {
            empty(lease, ring);
        }
        keepNanos = System.nanoTime() + KEEP_INTERVAL_NANOS;
    }

    private void empty(RelayLease lease, int ring) throws SQLException {
        try {
            outbox.database().transaction(c -> {
                outbox.tables().relay().lock(c, lease);
                return outbox.tables().scheduled().truncateIfEmpty(c, ring);
            });
        } catch (SQLException e) {
            if (!SqlErrors.isLockTimeout(e)) {
                throw e;
            }
            LOG.debug("Table {} of the scheduled events of outbox {} is in use; emptying it later", ring, outbox, e);
        }
    }
}
