package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.internal.sql.RelayTable.Polled;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
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
    private static final Duration ERROR_PAUSE = Duration.ofSeconds(1);
    private static final long RECENTLY_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final long BACKOFF_MIN_MS = 20;
    private static final long BACKOFF_MAX_MS = 1_000;

    private final OutboxDatabase outbox;
    private final Settings settings;
    private final PollSchedule schedule;
    private final PageMover mover;
    private final Senders senders;
    private final RingKeeper ring;
    private final RelayListener listener;
    private final Thread thread;
    private final UUID self = UUID.randomUUID();
    /** The lease of this process; {@code null} while it does not relay. */
    private final AtomicReference<@Nullable RelayLease> lease = new AtomicReference<>();

    private volatile long publishedAtNanos = System.nanoTime() - RECENTLY_NANOS;
    private int failures;
    /** Whether the last poll found events. */
    private boolean foundLast;
    /** Whether the last poll reported waiting events. */
    private boolean waiting;

    private long polledAtNanos;

    /** The collaborators of a relay. */
    record Context(PageMover mover, Senders senders, RingKeeper ring, RelayListener listener, PollSchedule schedule) {}

    Relay(OutboxDatabase outbox, Settings settings, Context context) {
        this.outbox = outbox;
        this.settings = settings;
        this.schedule = context.schedule();
        this.mover = context.mover();
        this.senders = context.senders();
        this.ring = context.ring();
        this.listener = context.listener();
        this.thread = new Thread(this::run, "eventsql-relay-" + outbox);
        thread.setDaemon(true);
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

    /** Returns whether a transaction of this process has published recently. */
    boolean hasPublishedRecently() {
        return System.nanoTime() - publishedAtNanos < RECENTLY_NANOS;
    }

    /** See {@link PollSchedule#committed()}. */
    void committed() {
        schedule.committed();
    }

    private void run() {
        try {
            while (!schedule.isClosed()) {
                boolean hinted = schedule.await();
                if (!schedule.isClosed()) {
                    pollSafely(hinted);
                }
                if (outbox.isDuplicate()) {
                    return;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // close() has reached its deadline
        } finally {
            end();
        }
    }

    private void pollSafely(boolean hinted) throws InterruptedException {
        try {
            poll(hinted);
            failures = 0;
        } catch (SQLException e) {
            failed(e);
        } catch (EventSqlException e) {
            LOG.error(
                    "Relaying outbox {} failed; retrying in {} ms: {}", outbox, ERROR_PAUSE.toMillis(), e.getMessage());
            resign();
            schedule.scheduleNext(ERROR_PAUSE, ERROR_PAUSE);
        } catch (RuntimeException | Error e) { // the thread must survive any failure
            LOG.error("Relaying outbox {} failed; retrying in {} ms", outbox, ERROR_PAUSE.toMillis(), e);
            resign();
            schedule.scheduleNext(ERROR_PAUSE, ERROR_PAUSE);
        }
    }

    private void failed(SQLException e) {
        if (SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
            lost(lease.get());
            return;
        }
        resign();
        long backoff = Math.min(BACKOFF_MIN_MS << Math.min(failures, 10), BACKOFF_MAX_MS);
        Duration pause =
                Duration.ofMillis(backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2 + 1));
        if (failures++ == 0) {
            LOG.warn("Relaying outbox {} failed; retrying in {} ms: {}", outbox, pause.toMillis(), e.getMessage());
        } else {
            LOG.debug("Relaying outbox {} failed again; retrying in {} ms", outbox, pause.toMillis(), e);
        }
        schedule.scheduleNext(pause, pause);
    }

    /** Ends the lease, because the last commit may be in doubt: acquiring the lease again finds all events to send. */
    private void resign() {
        senders.setTenure(null);
        lease.set(null);
    }

    /** Acquires or renews the lease if necessary, and moves events if this process has it. */
    private void poll(boolean hinted) throws SQLException, InterruptedException {
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
                listener.end();
                schedule.scheduleNext(settings.outboxLease().dividedBy(LEASE_PARTS), settings.notifyInterval());
                return;
            }
        } else {
            waiting = true; // the last poll found events: taking the next page is the poll
        }
        foundLast = waiting && moveAll(current) > 0;
        long took = System.nanoTime() - begun;
        if (foundLast) {
            schedule.found(took);
        } else {
            schedule.foundNothing(took, pollInterval());
        }
        ring.maintain(current);
    }

    /** Acquires, renews or loses the lease, and determines whether events wait. */
    private @Nullable RelayLease pollLease(@Nullable RelayLease held, boolean hinted) throws SQLException {
        Polled polled = outbox.database()
                .call(c -> outbox.tables()
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
        listener.begin();
        ring.markMoved();
        senders.wake(outbox.database().call(c -> outbox.tables().transfer().shardsWithEvents(c, outbox.otherShards())));
    }

    /** Moves pages until one is not full, or until the lease must be renewed. */
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
        } while (moved.full() && !schedule.isClosed() && System.nanoTime() - end < 0);
        return events;
    }

    private void lost(@Nullable RelayLease former) {
        if (former != null && lease.compareAndSet(former, null)) {
            LOG.info("Another process now relays outbox {}", outbox);
            senders.setTenure(null);
        }
    }

    private void end() {
        senders.close();
        RelayLease held = lease.getAndSet(null);
        try {
            listener.end();
            if (held != null) {
                outbox.database().call(c -> {
                    outbox.tables().relay().release(c, held);
                    return held;
                });
            }
        } catch (SQLException e) {
            LOG.debug("Could not release the lease on outbox {}; it will expire", outbox, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Stops the relay after the current transaction and releases the lease. */
    void stop() {
        schedule.close();
    }

    /** Waits until the relay has stopped; returns {@code false} if the deadline has passed. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        long left = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
        thread.join(Math.max(left, 1));
        if (thread.isAlive()) {
            thread.interrupt();
            return false;
        }
        return senders.awaitEnd(deadlineNanos);
    }
}
