package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.internal.sql.RelayTable.Polled;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Relays one outbox, if this process has the lease: polls the outbox and moves the events found. Processes without the
 * lease try to acquire it three times per lease duration, and signal their publishes to the one that has it. Runs in one
 * thread.
 *
 * <p>The lease only determines which process should relay. Safety rests on the relay's row, which every transaction checks
 * ({@link PageMover}).
 */
final class Relay {
    private static final Logger LOG = LoggerFactory.getLogger(Relay.class);
    private static final int LEASE_PARTS = 3;
    private static final long RECENTLY_NANOS = TimeUnit.MINUTES.toNanos(1);
    /** The number of consecutive polls that find events but cannot take them, after which that is logged. */
    private static final int UNTAKEN_POLLS = 3;

    private final OutboxDatabase outbox;
    private final Settings settings;
    private final PollSchedule schedule;
    private final PageMover mover;
    private final DueEvents due;
    private final PageMover dueMover;
    private final Senders senders;
    private final RingKeeper ring;
    private final RelayListener listener;
    private final ServiceThread thread;
    /** Failures of opening and polling the outbox. */
    private final FailureSeries pollFailures = new FailureSeries();
    /** Failures of moving events, which only a process that relays can end. */
    private final FailureSeries moveFailures = new FailureSeries();
    /** Whether the current poll has learned which process relays. */
    private boolean hasPolled;

    private final UUID self = UUID.randomUUID();
    /** The lease of this process; {@code null} while it does not relay. */
    private final AtomicReference<@Nullable RelayLease> lease = new AtomicReference<>();

    private volatile long publishedAtNanos = System.nanoTime() - RECENTLY_NANOS;
    /** Whether the last poll found events. */
    private boolean foundLast;
    /** Whether the last poll reported waiting events. */
    private boolean waiting;

    private int untakenPolls;
    private long polledAtNanos;

    /**
     * The collaborators of a relay.
     *
     * @param mover moves the events of the outbox
     * @param dueMover moves scheduled events that are due
     */
    record Context(
            PageMover mover,
            DueEvents due,
            PageMover dueMover,
            Senders senders,
            RingKeeper ring,
            RelayListener listener,
            PollSchedule schedule) {}

    Relay(OutboxDatabase outbox, Settings settings, Context context) {
        this.outbox = outbox;
        this.settings = settings;
        this.schedule = context.schedule();
        this.mover = context.mover();
        this.due = context.due();
        this.dueMover = context.dueMover();
        this.senders = context.senders();
        this.ring = context.ring();
        this.listener = context.listener();
        this.thread = new ServiceThread("eventsql-relay-" + outbox, this::run);
    }

    OutboxDatabase outbox() {
        return outbox;
    }

    void start() {
        thread.start();
    }

    /** See {@link PollSchedule#published()}. */
    void published() {
        publishedAtNanos = System.nanoTime();
        schedule.published();
    }

    /** Signals that this process has scheduled an event that is due in this time, or for it if negative. */
    void scheduled(long nanos) {
        due.expect(nanos);
        if (lease.get() != null) {
            schedule.wakeIn(nanos);
        } else if (nanos < pollInterval().toNanos()) {
            schedule.wakeIn(0); // signals it to the process that relays
        }
    }

    /** Returns whether a transaction of this process has published recently. */
    boolean hasPublishedRecently() {
        return System.nanoTime() - publishedAtNanos < RECENTLY_NANOS;
    }

    /** See {@link PollSchedule#committed()}. */
    void committed() {
        schedule.committed();
    }

    private void run() throws InterruptedException {
        boolean hinted = schedule.await();
        if (schedule.isClosed()) {
            end();
        } else if (outbox.isDuplicate()) {
            if (lease.get() != null) {
                LOG.warn(
                        "The database of {} is a shard that keys have moved to; no longer relaying its outbox, because processes"
                                + " that were given it as a shard do. Restart this one with it as a shard",
                        outbox);
            }
            end();
        } else {
            pollSafely(hinted);
        }
    }

    private void pollSafely(boolean hinted) {
        try {
            hasPolled = false;
            poll(hinted);
            int ended = (hasPolled ? pollFailures.end() : 0) + (lease.get() == null ? 0 : moveFailures.end());
            if (ended > 0) {
                LOG.info("Relaying outbox {} works again after {} failed attempts", outbox, ended);
            }
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
                lost(lease.get());
            } else {
                failed(e, SqlErrors.message(e));
            }
        } catch (RuntimeException | Error e) { // the lease must not outlive the work, whatever failed
            failed(e, e.toString());
        }
    }

    private void failed(Throwable e, String reason) {
        if (!(e instanceof SQLException sql
                && SqlErrors.waitsForOthers(sql))) { // that is rolled back: senders continue
            resign();
        }
        if (hasPolled) {
            pollFailures.end();
        }
        FailureSeries.Failure failure = (hasPolled ? moveFailures : pollFailures).add(reason);
        Duration pause = Duration.ofMillis(failure.retryMs());
        schedule.scheduleNext(pause, pause);
        if (!failure.isNew()) {
            LOG.debug("Relaying outbox {} failed again; retrying in {} ms", outbox, failure.retryMs(), e);
        } else if (e instanceof SQLException || e instanceof EventSqlException) {
            LOG.warn("Relaying outbox {} failed; retrying in {} ms: {}", outbox, failure.retryMs(), reason);
        } else {
            LOG.error("Relaying outbox {} failed; retrying in {} ms", outbox, failure.retryMs(), e);
        }
    }

    /** Ends the lease, because the last commit may be in doubt: acquiring the lease again finds all events to send. */
    private void resign() {
        senders.setTenure(null);
        lease.set(null);
    }

    /** Acquires or renews the lease if necessary, and moves events if this process has it. */
    private void poll(boolean hinted) throws SQLException {
        outbox.open();
        if (!outbox.isReady()) {
            return;
        }
        long begun = System.nanoTime();
        RelayLease current = lease.get();
        if (current == null || !foundLast || begun - polledAtNanos > leaseNanos() / LEASE_PARTS) {
            polledAtNanos = begun;
            current = pollLease(current, hinted);
            if (current == null) {
                hasPolled = true;
                listener.end();
                signalScheduled();
                schedule.scheduleNext(settings.outboxLease().dividedBy(LEASE_PARTS), settings.notifyInterval());
                // What is expected since then has woken the relay before the next poll was scheduled.
                if (due.untilNextNanos() < pollInterval().toNanos()) {
                    schedule.wakeIn(0);
                }
                return;
            }
        } else {
            waiting = true; // the last poll found events: taking the next page is the poll
        }
        hasPolled = true;
        foundLast = waiting && moveAll(current) > 0;
        boolean movedDue = moveDue(current);
        long took = System.nanoTime() - begun;
        checkTaken(polledAtNanos == begun && waiting && !foundLast);
        if (foundLast || movedDue) {
            schedule.found(took);
        } else {
            schedule.foundNothing(took, pollInterval());
        }
        ring.maintain(current);
        // Read after the next poll was scheduled: what is expected later wakes it.
        schedule.wakeIn(due.untilNextNanos());
    }

    private boolean moveDue(RelayLease current) throws SQLException {
        boolean moved = due.move(current, dueMover) > 0;
        if (moved && !outbox.otherShards().isEmpty()) { // some may be in the transfer table now
            ring.markMoved();
            senders.wake(outbox.otherShards());
        }
        return moved;
    }

    /** Signals a scheduled event of this process to the one that relays, which otherwise would not learn of it in time. */
    private void signalScheduled() throws SQLException {
        long nanos = due.takeExpected();
        if (nanos < pollInterval().toNanos()) {
            outbox.database().call(c -> {
                outbox.tables().notifications().send(c, Long.toString(TimeUnit.NANOSECONDS.toMillis(nanos)));
                return nanos;
            });
        }
    }

    /** Reports events that the database shows but does not let the relay delete. */
    private void checkTaken(boolean untaken) {
        untakenPolls = untaken ? untakenPolls + 1 : 0;
        if (untakenPolls == UNTAKEN_POLLS) {
            LOG.warn(
                    "The relay cannot take the events of outbox {}, because its DELETE returns none; a trigger or a row"
                            + " security policy of the table outbox may prevent it; the relay keeps polling",
                    outbox);
        }
    }

    /** Acquires, renews or loses the lease, and determines whether events wait. */
    private @Nullable RelayLease pollLease(@Nullable RelayLease held, boolean hinted) throws SQLException {
        Polled polled = outbox.database()
                .replicatedCall(c -> outbox.tables()
                        .relay()
                        .poll(c, self, held == null ? 0 : held.epoch(), leaseSeconds(), hinted && held == null));
        waiting = polled.waiting();
        Long epoch = polled.epoch();
        if (epoch == null) {
            lost(held);
            return null;
        }
        if (held != null && held.epoch() == epoch) {
            return held;
        }
        RelayLease acquired = new RelayLease(
                self, epoch, Math.toIntExact(settings.outboxLease().toMillis()));
        begin(acquired);
        return acquired;
    }

    /** Limited, because each poll renews the lease. */
    private Duration pollInterval() {
        Duration renewal = settings.outboxLease().dividedBy(LEASE_PARTS);
        return settings.outboxPollInterval().compareTo(renewal) < 0 ? settings.outboxPollInterval() : renewal;
    }

    private long leaseNanos() {
        return settings.outboxLease().toNanos();
    }

    private double leaseSeconds() {
        return settings.outboxLease().toMillis() / 1_000.0;
    }

    private void begin(RelayLease current) throws SQLException {
        LOG.debug("Relaying outbox {} with epoch {}", outbox, current.epoch());
        lease.set(current);
        senders.setTenure(current);
        due.begin();
        listener.begin();
        ring.markMoved();
        outbox.setSendsToItself(true); // the former holder of the lease may have done that
        senders.wake(outbox.database().read(c -> outbox.tables().transfer().shardsWithEvents(c, outbox.otherShards())));
    }

    /** Moves pages until one is not full, a scheduled event is due, or the lease must be renewed. */
    private int moveAll(RelayLease current) throws SQLException {
        long end = System.nanoTime() + leaseNanos() / LEASE_PARTS;
        int events = 0;
        PageMover.Moved moved;
        do {
            moved = mover.move(current);
            events += moved.events();
            if (moved.events() > 0) {
                ring.markMoved();
                senders.wake(moved.toShards());
                ring.maintain(current);
            }
        } while (moved.full() && !schedule.isClosed() && !due.isDue() && System.nanoTime() - end < 0);
        return events;
    }

    private void lost(@Nullable RelayLease former) {
        if (former != null && lease.compareAndSet(former, null)) {
            LOG.info("Another process now relays outbox {}", outbox);
            senders.setTenure(null);
        }
    }

    private void end() {
        thread.close();
        senders.close();
        listener.end();
        RelayLease held = lease.getAndSet(null);
        if (held == null) {
            return;
        }
        try {
            outbox.database().transaction(c -> {
                outbox.tables().relay().release(c, held);
                return held;
            });
        } catch (SQLException e) {
            LOG.debug("Could not release the lease on outbox {}; it will expire", outbox, e);
        }
    }

    /** Stops the relay after the current transaction and releases the lease. */
    void stop() {
        schedule.close();
    }

    /** Waits until the relay has stopped; returns {@code false} if the deadline has passed. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        boolean inTime = thread.join(Math.max(deadlineNanos - System.nanoTime(), 1));
        if (!inTime) {
            LOG.warn(
                    "The relay of outbox {} has not ended within the close timeout; its lease expires, and another process or"
                            + " the next start relays the rest",
                    outbox);
            thread.closeNow();
            senders.close();
            listener.end();
        }
        inTime &= senders.awaitEnd(deadlineNanos);
        listener.awaitEnd();
        return inTime;
    }
}
